// One simulated core behind a C interface for ctypes: clock, AXI memory, CSR host, trace.
// A cycle is two evaluations: inputs settle with the clock low, both models look, then the rising edge.
// An assertion, $stop or $finish in the design throws out of eval; the simulation is dead from then on and says why.
#include "Vtop.h"
#include "verilated.h"
#if defined(TRACE_FST)
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#elif defined(TRACE_VCD)
#include "verilated_vcd_c.h"
using Trace = VerilatedVcdC;
#endif
#include <algorithm>
#include <memory>
#include <stdexcept>

#include "axi_host.h"
#include "axi_memory.h"

#define API extern "C" __attribute__((visibility("default")))

static std::string place(const char* file, int line) { return std::string(file ? file : "?") + ":" + std::to_string(line); }
void vl_stop(const char* file, int line, const char* hier) {
    throw std::runtime_error("assertion failed or $stop at " + place(file, line) + " in " + hier);
}
void vl_finish(const char* file, int line, const char* hier) {
    throw std::runtime_error("$finish at " + place(file, line) + " in " + hier);
}
void vl_fatal(const char* file, int line, const char* hier, const char* msg) {
    throw std::runtime_error(std::string(msg) + " at " + place(file, line) + " in " + hier);
}

class Sim {
public:
    Sim() : top_(&context_, "top"), memory_(top_, rules, misses), host_(top_, rules) {
#if VM_TRACE
        context_.traceEverOn(true);
#endif
        top_.clk = 0;
        top_.rst = 1;
    }
    ~Sim() {
        activate();
        trace_close();
        if (fault.empty()) top_.final();
    }

    // Verilator's runtime works on the thread's context; another simulation may have been the last to set it.
    void activate() { Verilated::threadContextp(&context_); }
    void configure(const Settings& s) { memory_.configure(s); host_.configure(s); }
    AxiMemory<Vtop>& memory() { return memory_; }
    AxiHost<Vtop>& host() { return host_; }
    uint64_t cycles() const { return cycle_; }
    bool irq() const { return irq_; }

    void reset(unsigned n) {
        memory_.reset();
        host_.reset();
        top_.rst = 1;
        for (unsigned i = 0; i < n; ++i) edge(false);
        top_.rst = 0;
    }
    void step() { edge(true); }

    bool trace(const char* path) {
#if VM_TRACE
        trace_close();
        trace_.reset(new Trace);
        top_.trace(trace_.get(), 99);
        trace_->open(path);
        return trace_->isOpen();
#else
        (void)path;
        return false;
#endif
    }
    void trace_close() {
#if VM_TRACE
        if (trace_) trace_->close();
        trace_.reset();
#endif
    }

    Log rules, misses;
    std::string fault;

private:
    void edge(bool running) {
        memory_.drive();
        host_.drive();
        top_.clk = 0;
        top_.eval();
        dump(2 * cycle_);
        irq_ = top_.irq;
        if (running) {
            memory_.sample(cycle_);
            host_.sample(cycle_);
        }
        top_.clk = 1;
        top_.eval();
        dump(2 * cycle_ + 1);
        ++cycle_;
    }
    void dump(uint64_t time) {
        context_.time(time);
#if VM_TRACE
        if (trace_) trace_->dump(time);
#endif
    }

    VerilatedContext context_;
    Vtop top_;
    AxiMemory<Vtop> memory_;
    AxiHost<Vtop> host_;
    uint64_t cycle_ = 0;
    bool irq_ = false;
#if VM_TRACE
    std::unique_ptr<Trace> trace_;
#endif
};

// Runs `body` unless the simulation is dead; a throw kills it. Returns -2 when dead.
template <class Body> static int64_t guarded(Sim* sim, Body body) {
    if (!sim->fault.empty()) return -2;
    try {
        sim->activate();
        return body();
    } catch (const std::exception& e) {
        sim->fault = "cycle " + std::to_string(sim->cycles()) + ": " + e.what();
        return -2;
    }
}

API Sim* sys_open() { return new Sim; }
API void sys_close(Sim* sim) { delete sim; }
API unsigned sys_axi_bytes() { return AxiMemory<Vtop>::BYTES; }
API unsigned sys_settings_bytes() { return sizeof(Settings); }
API void sys_configure(Sim* sim, const Settings* s) { sim->configure(*s); }
API void sys_memory(Sim* sim, uint8_t* data, uint64_t base, uint64_t size) { sim->memory().memory(data, base, size); }
API uint64_t sys_cycles(Sim* sim) { return sim->cycles(); }
API int sys_irq(Sim* sim) { return sim->irq(); }
API int sys_bus_idle(Sim* sim) { return sim->memory().idle(); }
API const char* sys_fault(Sim* sim) { return sim->fault.c_str(); }
API void sys_stats(Sim* sim, uint64_t* out) { std::memcpy(out, &sim->memory().stats(), sizeof(AxiMemory<Vtop>::Stats)); }
API int sys_trace(Sim* sim, const char* path) { return sim->trace(path); }
API void sys_trace_close(Sim* sim) { sim->trace_close(); }

API int64_t sys_reset(Sim* sim, unsigned n) { return guarded(sim, [&] { sim->reset(n); return int64_t(n); }); }

// Steps up to `most` cycles, until `irq` is seen when asked for; the number of cycles done.
API int64_t sys_run(Sim* sim, int64_t most, int until_irq) {
    return guarded(sim, [&] {
        int64_t n = 0;
        while (n < most) {
            sim->step();
            ++n;
            if (until_irq && sim->irq()) break;
        }
        return n;
    });
}

// One CSR access that may take `most` cycles: the response, or -1 when there was none.
static int64_t finish(Sim* sim, int64_t most) {
    for (int64_t n = 0; sim->host().busy(); ++n) {
        if (n == most) { sim->host().reset(); return -1; }
        sim->step();
    }
    return sim->host().resp();
}
API int64_t sys_csr_write(Sim* sim, uint32_t addr, uint32_t value, int64_t most) {
    return guarded(sim, [&] { sim->host().write(addr, value); return finish(sim, most); });
}
API int64_t sys_csr_read(Sim* sim, uint32_t addr, uint32_t* value, int64_t most) {
    return guarded(sim, [&] {
        sim->host().read(addr);
        const int64_t resp = finish(sim, most);
        *value = sim->host().value();
        return resp;
    });
}

// Line `i` of the broken rules (which = 0) or of the accesses outside memory (1), or null; their number.
API const char* sys_line(Sim* sim, int which, unsigned i) {
    const auto& lines = (which ? sim->misses : sim->rules).lines();
    return i < lines.size() ? lines[i].c_str() : nullptr;
}
API uint64_t sys_line_count(Sim* sim, int which) { return (which ? sim->misses : sim->rules).count(); }
