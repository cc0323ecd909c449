// AXI4 memory slave. Every output is a register: `drive` sets the ports before the clock edge, `sample` looks at
// the settled ports of the same cycle and decides the next one's, so ready never depends on valid in one cycle.
//
// A write reaches memory when its response is first offered, and a read sees memory when its beat is first offered:
// a core that does not wait for responses reads old data here. Data of different ids may be interleaved, and
// responses reordered, when `interleave` is set; those of one id stay in order.
#pragma once
#include "common.h"
#include <deque>

template <class Top> class AxiMemory {
public:
    static constexpr unsigned BYTES = sizeof(std::remove_reference_t<decltype(Top::m_axi_wdata)>);
    static_assert(BYTES <= MAX_BYTES && (BYTES & (BYTES - 1)) == 0, "data bus of 32 to 512 bits");
    struct Stats {  // mirrored by `Stats` in tb/runner.py
        uint64_t read_bursts = 0, read_beats = 0, write_bursts = 0, write_beats = 0;
        uint64_t most_read_beats = 0, most_write_bursts = 0;  // requested and not yet answered
    };

    AxiMemory(Top& top, Log& rules, Log& misses) : top_(top), rules_(rules), misses_(misses), random_(1) {}

    void configure(const Settings& s) { set_ = s; random_.reset(s.seed); }
    void memory(uint8_t* data, uint64_t base, uint64_t size) { data_ = data; base_ = base; size_ = size; }
    const Stats& stats() const { return stats_; }
    bool idle() const { return reads_.empty() && writes_.empty() && answers_.empty() && !r_.valid && !b_.valid; }

    void reset() {
        reads_.clear(); writes_.clear(); answers_.clear(); early_.clear();
        r_.valid = b_.valid = ar_ready_ = aw_ready_ = w_ready_ = false;
        tokens_ = 0; beats_out_ = 0;
        held_ar_.clear(); held_aw_.clear(); held_w_.clear();
    }

    void drive() {
        top_.m_axi_arready = ar_ready_;
        top_.m_axi_awready = aw_ready_;
        top_.m_axi_wready = w_ready_;
        top_.m_axi_rvalid = r_.valid;
        if (r_.valid) {
            top_.m_axi_rid = r_.id;
            top_.m_axi_rresp = r_.resp;
            top_.m_axi_rlast = r_.last;
            store(top_.m_axi_rdata, r_.data);
        }
        top_.m_axi_bvalid = b_.valid;
        if (b_.valid) { top_.m_axi_bid = b_.id; top_.m_axi_bresp = b_.resp; }
    }

    void sample(uint64_t cycle) {
        cycle_ = cycle;
        if (set_.bandwidth > 0) tokens_ = std::min(tokens_ + set_.bandwidth, std::max(set_.bandwidth, double(BYTES)));
        check_held();
        if (r_.valid && top_.m_axi_rready) { r_.valid = false; --beats_out_; }
        if (b_.valid && top_.m_axi_bready) b_.valid = false;
        if (ar_ready_ && top_.m_axi_arvalid) take_ar();
        if (aw_ready_ && top_.m_axi_awvalid) take_aw();
        if (w_ready_ && top_.m_axi_wvalid) take_w();
        while (!writes_.empty() && !early_.empty()) join();
        if (!r_.valid) offer_r();
        if (!b_.valid) offer_b();
        const bool open = !(set_.dead & DEAD_READY);
        ar_ready_ = open && reads_.size() < set_.outstanding && !random_.chance(set_.stall);
        aw_ready_ = open && writes_.size() + answers_.size() < set_.outstanding && !random_.chance(set_.stall);
        w_ready_ = open && early_.size() < 512 && affordable() && !random_.chance(set_.stall);
    }

private:
    struct Beat { uint8_t data[BYTES]; uint8_t strobe[8]; bool last; };
    struct Read { unsigned id; uint64_t addr; unsigned len, beat; uint64_t ready_at; };
    struct Write { unsigned id; uint64_t addr; unsigned len; unsigned resp; uint64_t ready_at; std::vector<Beat> beats; };
    struct ROut { bool valid = false, last = false; unsigned id = 0, resp = 0; uint8_t data[BYTES] = {}; };
    struct BOut { bool valid = false; unsigned id = 0, resp = 0; };

    bool affordable() const { return set_.bandwidth <= 0 || tokens_ > 0; }
    void pay() { if (set_.bandwidth > 0) tokens_ -= BYTES; }
    void rule(const std::string& text) { rules_.add(cycle_, text); }
    uint64_t due() { return cycle_ + set_.latency + (set_.jitter ? random_.below(set_.jitter + 1) : 0); }

    void check_held() {
        uint8_t p[2 * MAX_BYTES + 32];
        auto request = [&p](uint64_t addr, unsigned id, unsigned len, unsigned size, unsigned burst) {
            std::memcpy(p, &addr, 8);
            p[8] = id; p[9] = len; p[10] = size; p[11] = burst;
        };
        request(top_.m_axi_araddr, top_.m_axi_arid, top_.m_axi_arlen, top_.m_axi_arsize, top_.m_axi_arburst);
        if (held_ar_.broken(top_.m_axi_arvalid, ar_ready_, p, 12)) rule("AR changed or fell before arready");
        request(top_.m_axi_awaddr, top_.m_axi_awid, top_.m_axi_awlen, top_.m_axi_awsize, top_.m_axi_awburst);
        if (held_aw_.broken(top_.m_axi_awvalid, aw_ready_, p, 12)) rule("AW changed or fell before awready");
        p[0] = top_.m_axi_wlast;
        std::memset(p + 1, 0, 8);
        load(p + 1, top_.m_axi_wstrb);
        load(p + 9, top_.m_axi_wdata);
        if (held_w_.broken(top_.m_axi_wvalid, w_ready_, p, 9 + BYTES)) rule("W changed or fell before wready");
    }

    void check_request(const char* name, uint64_t addr, unsigned len, unsigned size, unsigned burst) {
        const std::string where = std::string(name) + " at " + hex(addr) + ", " + std::to_string(len + 1) + " beats: ";
        if (burst != 1) rule(where + "burst type " + std::to_string(burst) + ", only INCR (1) is used");
        if ((1u << size) != BYTES) rule(where + "size " + std::to_string(size) + " is not the bus width");
        if ((addr & 4095 & ~uint64_t(BYTES - 1)) + uint64_t(len + 1) * BYTES > 4096) rule(where + "crosses 4 KiB");
    }

    void take_ar() {
        Read r{unsigned(top_.m_axi_arid), uint64_t(top_.m_axi_araddr), unsigned(top_.m_axi_arlen), 0, due()};
        check_request("AR", r.addr, r.len, top_.m_axi_arsize, top_.m_axi_arburst);
        reads_.push_back(r);
        beats_out_ += r.len + 1;
        ++stats_.read_bursts;
        if (beats_out_ > stats_.most_read_beats) stats_.most_read_beats = beats_out_;
    }

    void take_aw() {
        Write w{unsigned(top_.m_axi_awid), uint64_t(top_.m_axi_awaddr), unsigned(top_.m_axi_awlen), OKAY, 0, {}};
        check_request("AW", w.addr, w.len, top_.m_axi_awsize, top_.m_axi_awburst);
        writes_.push_back(std::move(w));
        ++stats_.write_bursts;
        stats_.most_write_bursts = std::max<uint64_t>(stats_.most_write_bursts, writes_.size() + answers_.size());
    }

    void take_w() {
        Beat b{};
        load(b.data, top_.m_axi_wdata);
        load(b.strobe, top_.m_axi_wstrb);
        b.last = top_.m_axi_wlast;
        early_.push_back(b);
        ++stats_.write_beats;
        pay();
    }

    // Gives the oldest data beat to the oldest write that lacks data.
    void join() {
        Write& w = writes_.front();
        const bool last = w.beats.size() == w.len;
        if (early_.front().last != last)
            rule("wlast is " + std::to_string(early_.front().last) + " on beat " + std::to_string(w.beats.size() + 1) +
                 " of " + std::to_string(w.len + 1) + " of the write at " + hex(w.addr));
        w.beats.push_back(early_.front());
        early_.pop_front();
        if (!last) return;
        w.ready_at = due();
        answers_.push_back(std::move(w));
        writes_.pop_front();
    }

    static uint64_t beat_addr(uint64_t addr, unsigned beat) { return (addr & ~uint64_t(BYTES - 1)) + uint64_t(beat) * BYTES; }

    unsigned classify(const char* name, uint64_t addr) {
        if (addr < set_.error_hi && addr + BYTES > set_.error_lo) return SLVERR;
        if (data_ && addr >= base_ && addr - base_ + BYTES <= size_) return OKAY;
        misses_.add(cycle_, std::string(name) + " at " + hex(addr) + " is outside the memory window " + hex(base_) +
                    " .. " + hex(base_ + size_));
        return DECERR;
    }

    // Index in `queue` of the entry to answer next, or -1: the oldest of an id, and due.
    template <class Queue> int choose(const Queue& queue) {
        if (queue.empty()) return -1;
        if (!set_.interleave) return queue.front().ready_at <= cycle_ + 1 ? 0 : -1;
        int found[16], n = 0;
        unsigned seen = 0;
        for (size_t i = 0; i < queue.size() && seen != 0xffff; ++i) {
            const unsigned bit = 1u << (queue[i].id & 15);
            if (!(seen & bit) && queue[i].ready_at <= cycle_ + 1) found[n++] = int(i);
            seen |= bit;
        }
        return n ? found[random_.below(n)] : -1;
    }

    void offer_r() {
        if ((set_.dead & DEAD_READ) || !affordable() || random_.chance(set_.stall)) return;
        const int i = choose(reads_);
        if (i < 0) return;
        Read& r = reads_[i];
        const uint64_t addr = beat_addr(r.addr, r.beat);
        r_.id = r.id;
        r_.resp = classify("read", addr);
        if (r_.resp == OKAY) std::memcpy(r_.data, data_ + (addr - base_), BYTES);
        else std::memset(r_.data, 0xD5, BYTES);
        r_.last = r.beat == r.len;
        r_.valid = true;
        ++stats_.read_beats;
        pay();
        if (r_.last) reads_.erase(reads_.begin() + i);
        else ++r.beat;
    }

    void offer_b() {
        if ((set_.dead & DEAD_WRITE) || random_.chance(set_.stall)) return;
        const int i = choose(answers_);
        if (i < 0) return;
        Write& w = answers_[i];
        for (unsigned k = 0; k <= w.len; ++k) apply(w, k);
        b_.valid = true;
        b_.id = w.id;
        b_.resp = w.resp;
        answers_.erase(answers_.begin() + i);
    }

    void apply(Write& w, unsigned k) {
        const uint64_t addr = beat_addr(w.addr, k);
        const unsigned resp = classify("write", addr);
        if (resp != OKAY) { w.resp = std::max(w.resp, resp); return; }
        for (unsigned j = 0; j < BYTES; ++j)
            if (w.beats[k].strobe[j / 8] >> (j % 8) & 1) data_[addr - base_ + j] = w.beats[k].data[j];
    }

    Top& top_;
    Log &rules_, &misses_;
    Random random_;
    Settings set_;
    Stats stats_;
    uint8_t* data_ = nullptr;
    uint64_t base_ = 0, size_ = 0, cycle_ = 0, beats_out_ = 0;
    double tokens_ = 0;
    bool ar_ready_ = false, aw_ready_ = false, w_ready_ = false;
    std::deque<Read> reads_;     // requested, oldest first
    std::deque<Write> writes_;   // address taken, data missing
    std::deque<Write> answers_;  // complete, response not offered
    std::deque<Beat> early_;     // data whose address has not come
    ROut r_;
    BOut b_;
    Held held_ar_, held_aw_, held_w_;
};
