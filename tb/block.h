// What the models of blocks have in common; see tb/blocks.py.
#pragma once
#include <cstring>
#include <string>
#include "svdpi.h"
#include "verilated.h"

// Model and state of one instance.
template <class Top>
struct Block {
    explicit Block(const char* scope) : top{&context, scope} { top.clk = 0; top.eval(); }
    ~Block() { top.final(); }

    void edge() {
        ++calls;
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
    }

    void check(bool same, const char* name) {
        if (!same) vl_fatal(__FILE__, __LINE__, name, "a combinational path leads from an input to an output of a block");
    }

    VerilatedContext context;
    Top top;
    uint64_t calls = 0;
};

// A context becomes the thread's when it is made; the caller's is put back.
template <class Top>
Block<Top>* create(const char* scope) {
    VerilatedContext* const before = Verilated::threadContextp();
    auto* const block = new Block<Top>(scope);
    Verilated::threadContextp(before);
    return block;
}

// Verilator unregisters a model's scopes from the thread's context, which must be the model's own, and alive.
template <class Top>
void discard(Block<Top>* block) {
    VerilatedContext* const before = Verilated::threadContextp();
    Verilated::threadContextp(&block->context);
    delete block;
    Verilated::threadContextp(before);
}

template <class T>
inline void put(T& port, const svBitVecVal* value) {
    if constexpr (sizeof(T) <= 4) port = static_cast<T>(value[0]);
    else port = static_cast<T>(value[0]) | static_cast<T>(value[1]) << 32;
}
template <std::size_t N>
inline void put(VlWide<N>& port, const svBitVecVal* value) { std::memcpy(port.data(), value, 4 * N); }

template <class T>
inline void get(const T& port, svBitVecVal* value) {
    value[0] = static_cast<svBitVecVal>(port);
    if constexpr (sizeof(T) > 4) value[1] = static_cast<svBitVecVal>(port >> 32);
}
template <std::size_t N>
inline void get(const VlWide<N>& port, svBitVecVal* value) { std::memcpy(value, port.data(), 4 * N); }

template <class T>
inline bool same(const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }
