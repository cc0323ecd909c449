// AXI4-Lite master that plays the host: one access at a time, with the same random delays as the memory.
#pragma once
#include "common.h"

template <class Top> class AxiHost {
public:
    AxiHost(Top& top, Log& rules) : top_(top), rules_(rules), random_(1) {}

    void configure(const Settings& s) { stall_ = s.stall; random_.reset(s.seed ^ 0x686F7374); }
    void reset() { aw_ = w_ = ar_ = want_b_ = want_r_ = b_ready_ = r_ready_ = false; todo_aw_ = todo_w_ = todo_ar_ = false; }

    void write(uint32_t addr, uint32_t value) {
        addr_ = addr; value_ = value;
        todo_aw_ = todo_w_ = want_b_ = true;
        start();
    }
    void read(uint32_t addr) {
        addr_ = addr;
        todo_ar_ = want_r_ = true;
        start();
    }
    bool busy() const { return want_b_ || want_r_; }
    unsigned resp() const { return resp_; }
    uint32_t value() const { return value_; }

    void drive() {
        top_.s_axil_awvalid = aw_; top_.s_axil_awaddr = addr_ & 0xfff;
        top_.s_axil_wvalid = w_; top_.s_axil_wdata = value_; top_.s_axil_wstrb = 15;
        top_.s_axil_arvalid = ar_; top_.s_axil_araddr = addr_ & 0xfff;
        top_.s_axil_bready = b_ready_;
        top_.s_axil_rready = r_ready_;
    }

    void sample(uint64_t cycle) {
        if (aw_ && top_.s_axil_awready) aw_ = false;
        if (w_ && top_.s_axil_wready) w_ = false;
        if (ar_ && top_.s_axil_arready) ar_ = false;
        if (top_.s_axil_bvalid && !(want_b_ && !aw_ && !w_ && !todo_aw_ && !todo_w_))
            rules_.add(cycle, "CSR write response without a write");
        if (top_.s_axil_rvalid && !(want_r_ && !ar_ && !todo_ar_)) rules_.add(cycle, "CSR read data without a read");
        if (want_b_ && b_ready_ && top_.s_axil_bvalid) { resp_ = top_.s_axil_bresp; want_b_ = false; }
        if (want_r_ && r_ready_ && top_.s_axil_rvalid) {
            resp_ = top_.s_axil_rresp; value_ = top_.s_axil_rdata; want_r_ = false;
        }
        start();
        b_ready_ = want_b_ && !random_.chance(stall_);
        r_ready_ = want_r_ && !random_.chance(stall_);
    }

private:
    // Raises the valids that are due; each may be late, so address and data come in any order.
    void start() {
        if (todo_aw_ && !random_.chance(stall_)) { aw_ = true; todo_aw_ = false; }
        if (todo_w_ && !random_.chance(stall_)) { w_ = true; todo_w_ = false; }
        if (todo_ar_ && !random_.chance(stall_)) { ar_ = true; todo_ar_ = false; }
    }

    Top& top_;
    Log& rules_;
    Random random_;
    double stall_ = 0;
    uint32_t addr_ = 0, value_ = 0;
    unsigned resp_ = 0;
    bool todo_aw_ = false, todo_w_ = false, todo_ar_ = false;
    bool aw_ = false, w_ = false, ar_ = false, want_b_ = false, want_r_ = false, b_ready_ = false, r_ready_ = false;
};
