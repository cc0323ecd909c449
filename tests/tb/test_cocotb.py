"""The cocotb bench with the copy core: it passes what is right and fails, with a reason, what is not."""

import numpy as np
import pytest
from copy_core import BASE, copy_core

from tb.cocotb_run import CocotbError, build, run

HALF = 32 * 2 * 8


def program(**changes):
    """Two rounds of 32 beats of 8 bytes."""
    memory = np.random.default_rng(3).integers(0, 256, 2 * HALF, dtype=np.uint8)
    after = np.concatenate([memory[:HALF], memory[:HALF]])
    writes = np.array([[0x4, BASE], [0x8, BASE + HALF], [0xC, 64], [0x10, 1]])
    return {"mem_init": memory, "csr_writes": writes, "expected_mem": after, "base": BASE,
            "csr_expect": np.array([[0x14, 1, 3]]), **changes}


@pytest.mark.parametrize("seed, pause", [(1, 0.0), (2, 0.5)])
def test_copy(seed, pause):
    assert run(copy_core(64), program(), seed=seed, pause=pause, deadline_cycles=5000) == 1


def test_program_from_a_file(tmp_path):
    np.savez(tmp_path / "p.npz", **program(compare=np.array([[HALF, 2 * HALF]])))
    assert run(copy_core(64), tmp_path / "p.npz", deadline_cycles=5000, repeat=1) == 1


def test_wrong_expectations_fail():
    wrong = program()
    wrong["expected_mem"][HALF + 5] ^= 1
    cases = [(wrong, "1 bytes differ, first at offset 0x205"),
             (program(csr_expect=np.array([[0x14, 3, 3]])), "CSR 0x14 is 0x1, expected 0x3"),
             (program(compare=np.zeros((0, 2), int)), "compares no byte"),
             (program(csr_writes=np.array([[0x10, 0]])), "no irq 500 cycles"),
             (program(csr_writes=np.array([[0x4, BASE], [0x8, BASE + HALF], [0xC, 96], [0x10, 1]])),
              "memory beyond the program")]
    for case, reason in cases:
        with pytest.raises(CocotbError, match=reason):
            run(copy_core(64), case, deadline_cycles=500, repeat=1, pause=0.1)


def test_assertion_and_syntax_error_fail():
    stop = program(csr_writes=np.array([[0x10, 4]]))
    with pytest.raises(CocotbError, match="top.v"):
        run(copy_core(64), stop, deadline_cycles=500, repeat=1)
    with pytest.raises(CocotbError, match="syntax error"):
        build("module top (input clk; endmodule")
