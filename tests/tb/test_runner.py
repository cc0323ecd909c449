"""The native runner with a copy core: every behaviour of the memory, and every error with its name."""

import ctypes
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from copy_core import BASE, MAGIC, copy_core

from tb.build import BuildError, build
from tb.runner import Rtl, RtlError


@pytest.mark.parametrize("bits", [32, 64, 128, 512])
def test_copies_at_every_width(make_copy, bits):
    """All ways Verilator stores a port: 32 and 64-bit integers, arrays of words."""
    run = make_copy(bits)
    assert run.rtl.axi_bytes == bits // 8
    assert run.rtl.csr_read(0) == MAGIC
    assert not run.copied()
    assert run.go() and run.copied()
    assert run.rtl.csr_read(0x20) == run.expected_sum()
    assert run.rtl.csr_read(0x14) == 1
    assert run.rtl.protocol_errors == [] and run.rtl.address_errors == [] and run.rtl.bus_idle
    stats = run.rtl.stats
    assert (stats.read_beats, stats.write_beats) == (256, 256) and stats.read_bursts == 16
    assert stats.most_read_beats == 31  # the first beat comes back while the second request goes out


@pytest.mark.parametrize("seed", range(6))
def test_random_stalls_and_interleaving(make_copy, seed):
    print(f"seed {seed}")
    run = make_copy()
    run.rtl.configure(stall=0.1 + 0.1 * seed, latency=1 + 5 * seed, jitter=7 * (seed % 3), seed=seed)
    for _ in range(2):  # a second run starts from a used machine
        run.memory[len(run.memory) // 2:] = 0
        assert run.go() and run.copied() and run.rtl.csr_read(0x20) == run.expected_sum()
    assert run.rtl.protocol_errors == []


def test_same_seed_same_cycles(make_copy):
    def cycles(seed):
        run = make_copy()
        run.rtl.configure(stall=0.3, seed=seed)
        assert run.go()
        return run.rtl.cycles

    counts = [cycles(seed) for seed in (5, 5, 6, 7)]
    assert counts[0] == counts[1] and len(set(counts)) > 1


def test_full_rate_latency_and_bandwidth(make_copy):
    """Two reads of 16 beats are outstanding: a round is 32 + 32 beats and two latencies."""
    def per_round(**bus):
        run = make_copy(rounds=16)
        run.rtl.configure(**bus)
        start = run.rtl.cycles
        assert run.go() and run.copied()
        return (run.rtl.cycles - start) / 16

    fast = per_round()
    assert 64 <= fast < 72
    assert per_round(latency=51) == pytest.approx(fast + 100, abs=3)
    assert per_round(bandwidth=8) == pytest.approx(2 * 64, rel=0.1)   # half a beat a cycle
    assert per_round(bandwidth=1.6) == pytest.approx(10 * 64, rel=0.05)


def test_read_and_write_errors(make_copy):
    run = make_copy()
    half = len(run.memory) // 2
    for error_range in ((BASE + 100, BASE + 101), (BASE + half + 100, BASE + half + 101)):
        run.memory[half:] = 0
        run.rtl.configure(error_range=error_range)
        assert run.go() and run.rtl.csr_read(0x14) == 3
    beat = run.memory[half + 96:half + 112]
    assert not beat.any() and not run.copied()  # the failing beat was not written
    assert run.rtl.address_errors == []


def test_outside_memory_is_recorded(make_copy):
    run = make_copy()
    run.rtl.set_memory(run.memory, BASE + 4096)
    assert run.go() and run.rtl.csr_read(0x14) == 3
    errors = run.rtl.address_errors
    assert "read at 0x120000 is outside the memory window 0x121000" in errors[0]
    assert len(errors) == 101 and errors[-1].startswith("... and ")


@pytest.mark.parametrize("dead", ["read", "write", "both", "ready"])
def test_dead_memory_ends_at_the_deadline(make_copy, dead):
    run = make_copy()
    run.rtl.configure(dead=dead)
    assert not run.go(max_cycles=3000)
    assert run.rtl.stats.write_beats == (32 if dead == "write" else 0)
    run.rtl.configure()
    run.rtl.reset()
    assert run.go() and run.copied()


def test_protocol_violations_are_named(make_copy):
    run = make_copy()
    run.rtl.configure(stall=0.5, seed=2)
    run.go(control=3)
    text = "\n".join(run.rtl.protocol_errors)
    for word in ("AR changed", "AW changed", "W changed",
                 "crosses 4 KiB", "burst type 0", "wlast is 1 on beat 4 of 16", "wlast is 0 on beat 16 of 16"):
        assert word in text


def test_core_that_ignores_write_responses_is_caught(make_copy):
    run = make_copy()
    run.rtl.configure(latency=200)
    assert run.go(control=9)
    assert not run.copied() and not run.rtl.bus_idle


def test_assertion_stops_with_its_place(make_copy):
    run = make_copy()
    with pytest.raises(RtlError, match=r"cycle \d+: assertion failed or \$stop at top.v:\d+"):
        run.go(control=4)
    with pytest.raises(RtlError, match="assertion failed"):
        run.rtl.step()
    other = make_copy()  # a dead simulation does not disturb the next
    assert other.go() and other.copied()


def test_csr_errors(make_copy):
    rtl = make_copy().rtl
    with pytest.raises(RtlError, match="CSR read at 0x18 answered SLVERR"):
        rtl.csr_read(0x18)
    with pytest.raises(RtlError, match="CSR write at 0x18 answered SLVERR"):
        rtl.csr_write(0x18, 0)
    with pytest.raises(RtlError, match="CSR read at 0x1c: no answer in 10000 cycles"):
        rtl.csr_read(0x1C)
    rtl.reset()
    rtl.configure(stall=0.5, seed=3)
    for value in range(20):
        rtl.csr_write(0x4, value)
        assert rtl.csr_read(0x4) == value
    assert rtl.protocol_errors == []


def test_arguments_are_checked(make_copy):
    rtl = make_copy().rtl
    with pytest.raises(ValueError, match="dead = 'x'"):
        rtl.configure(dead="x")
    with pytest.raises(ValueError, match="stall 1"):
        rtl.configure(stall=1)
    with pytest.raises(ValueError, match="uint8"):
        rtl.set_memory(np.zeros(64, np.int32))
    with pytest.raises(ValueError, match="multiples of 16"):
        rtl.set_memory(np.zeros(64, np.uint8), 8)
    with pytest.raises(ValueError, match="until"):
        rtl.run(1, until="done")
    with pytest.raises(ValueError, match="128-bit AXI data bus"):
        Rtl(copy_core(128), SimpleNamespace(axi_data_bits=64))
    with pytest.raises(ValueError, match="trace"):
        build(copy_core(128), trace="wlf")
    rtl.close()
    rtl.close()
    with pytest.raises(RtlError, match="closed"):
        rtl.step()


def test_step_counts_and_two_cores_at_once(make_copy):
    a, b = make_copy(128), make_copy(64)
    start = a.rtl.cycles
    a.rtl.step(12_345)
    assert a.rtl.cycles - start == 12_345 and b.rtl.cycles == start
    assert a.go() and b.go() and a.copied() and b.copied()


def test_interrupt_ends_a_long_run(make_copy):
    rtl = make_copy().rtl
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        rtl.run(10**12)
    assert time.monotonic() - begin < 10
    rtl.step()  # and the simulation lives on


def test_vcd_trace(make_copy, tmp_path):
    run = make_copy(trace="vcd", no_inline=("fo*",))
    run.rtl.trace(tmp_path / "copy.vcd")
    assert run.go()
    run.rtl.trace_stop()
    text = (tmp_path / "copy.vcd").read_text()
    assert "m_axi_arvalid" in text and "folder" in text and text.count("#") > 1000
    with pytest.raises(RtlError, match="cannot trace"):
        make_copy().rtl.trace(tmp_path / "none.vcd")


def test_verilog_error_is_shown():
    with pytest.raises(BuildError, match="syntax error"):
        build("module top (input clk; endmodule")


def test_library_keeps_its_symbols_to_itself(make_copy):
    library = ctypes.CDLL(str(make_copy().rtl.library_path))
    assert library.sys_axi_bytes() == 16
    assert not hasattr(library, "_Z7vl_stopPKciS0_")
