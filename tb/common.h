// Parts shared by the memory and host models: settings, random numbers, the message log, port access.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

constexpr unsigned MAX_BYTES = 64;      // widest data bus
constexpr unsigned MAX_MESSAGES = 100;  // a broken core breaks a rule every cycle; the first ones tell
enum Resp : unsigned { OKAY = 0, SLVERR = 2, DECERR = 3 };
enum Dead : unsigned { DEAD_READ = 1, DEAD_WRITE = 2, DEAD_READY = 4 };

// Behaviour of the bus; the layout is mirrored by `Settings` in tb/runner.py.
struct Settings {
    uint64_t seed = 1;
    uint64_t error_lo = 0, error_hi = 0;  // beats that touch [lo, hi) answer SLVERR
    double bandwidth = 0;                 // bytes a cycle, reads and writes together; 0: no limit
    double stall = 0;                     // probability, each channel and cycle
    uint32_t latency = 1;                 // cycles from a request to its first answer
    uint32_t jitter = 0;                  // most extra cycles of latency, random per burst
    uint32_t interleave = 0;              // mix read beats, and write responses, of different ids
    uint32_t dead = 0;                    // bits of Dead
    uint32_t outstanding = 64;            // bursts accepted and not answered, each direction
    uint32_t spare = 0;
};

class Random {  // xorshift64*
public:
    explicit Random(uint64_t seed) { reset(seed); }
    void reset(uint64_t seed) { state_ = seed * 0x9E3779B97F4A7C15ull + 0xD1B54A32D192ED03ull; if (!state_) state_ = 1; }
    uint32_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return uint32_t((state_ * 0x2545F4914F6CDD1Dull) >> 32);
    }
    bool chance(double p) { return p > 0 && next() < p * 4294967296.0; }
    uint32_t below(uint32_t n) { return uint32_t((uint64_t(next()) * n) >> 32); }

private:
    uint64_t state_;
};

class Log {
public:
    void add(uint64_t cycle, const std::string& text) {
        if (lines_.size() < MAX_MESSAGES) lines_.push_back("cycle " + std::to_string(cycle) + ": " + text);
        ++count_;
    }
    const std::vector<std::string>& lines() const { return lines_; }
    uint64_t count() const { return count_; }

private:
    std::vector<std::string> lines_;
    uint64_t count_ = 0;
};

inline std::string hex(uint64_t v) {
    static const char digit[] = "0123456789abcdef";
    std::string s;
    do { s.insert(s.begin(), digit[v & 15]); v >>= 4; } while (v);
    return "0x" + s;
}

// Verilator keeps a port in an unsigned integer of 1, 2, 4 or 8 bytes or in an array of 32-bit words, low word
// first: on a little-endian host every form is the bytes of the value.
template <class Port> void load(uint8_t* to, const Port& port) { std::memcpy(to, &port, sizeof(port)); }
template <class Port> void store(Port& port, const uint8_t* from) { std::memcpy(&port, from, sizeof(port)); }

// One channel that the core drives: valid must stay, and its payload must not change, until ready.
class Held {
public:
    void clear() { waiting_ = false; }
    // `payload` describes this cycle; true if the rule is broken.
    bool broken(bool valid, bool ready, const uint8_t* payload, size_t bytes) {
        const bool bad = waiting_ && (!valid || std::memcmp(seen_, payload, bytes) != 0);
        waiting_ = valid && !ready;
        if (waiting_) std::memcpy(seen_, payload, bytes);
        return bad;
    }

private:
    bool waiting_ = false;
    uint8_t seen_[2 * MAX_BYTES + 32] = {};
};
