"""RTL under a program: Verilator builds, the native runner, the cocotb bench.

Modules, lowest first:

- `tb.verilator`   finds Verilator, g++ and make, or says what to type
- `tb.cache`       build cache keyed by content
- `tb.build`       Verilog + C++ runner -> one shared library
- `tb.runner`      `Rtl`: a simulated core with AXI memory and a CSR host, driven from Python
- `tb.cocotb_run`  the same core under cocotb with third-party AXI models (`tb.bench_core`)
"""
