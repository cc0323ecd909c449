"""Vector engine against the meaning of its instructions (`isa.meaning_compute`, so `isa.numerics`); rates; traps.

The fewer physical lanes, the faster the simulation: long programs run on one, shorter ones on two and four.
"""

import numpy as np
import pytest

from isa.config import preset
from isa.dtypes import DType
from isa.ops import AluOp
from isa.registers import Trap
from isa.table import Mode
from tests.hw.datapath import generator
from tests.hw.vector_bench import Reference, Run
from tests.hw.vector_programs import program

ALL = {"p0": 0, "pn": 4}


def config(fold):
    return preset("tiny").with_(lane_fold=fold)


def reference(fold, rng):
    return Reference(config(fold), rng)


def legal(ref, name, **values):
    done = ref.run(name, **values)
    assert done is not None, f"{name} {values} is not legal"
    return done


def flat(name, addr, dtype=DType.FP32):
    """A contiguous operand on the last axis."""
    return {f"{name}_addr": addr, f"{name}_s2": 1, f"{name}_type": dtype}


def test_random():
    """A random program, back to back where no instruction reads what is not yet written; random grants and gaps."""
    rng = generator("test_random")
    ref = reference(4, rng)
    instructions, drawn = program(rng, ref, 18, elements=16)
    run = Run(ref, instructions, rng, grant=0.8, offer=0.9)
    run.compare()
    assert not run.traps and len({name for name, _ in drawn}) == 6 and run.writes > 18
    assert (ref.sbuf.data != ref.before).any()


def test_directed():
    """Predicates of every type, outputs of small sizes, in place, scalars of every lane, numbers that saturate."""
    rng = generator("test_directed")
    ref = reference(4, rng)
    ref.sbuf.data[:, :64] = np.array(
        [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x7FC00001, 0x3F800000, 0x80, 0x8000, 0x80008000, 0x0001, 0x7F80,
         0x8001, 0x0100, 0xFF, 0x10000], np.uint32).view(np.uint8)
    ref.before = ref.sbuf.data.copy()
    todo = [legal(ref, "sel", **ALL, n2=12, **flat("x", 1024), **flat("b", 0, t), **flat("y", 2048 + 64 * t))
            for t in DType]
    for n in (1, 2, 7, 8, 9, 17):
        todo.append(legal(ref, "red", **ALL, n1=2, n2=n, **flat("x", 512), x_s1=n, y_addr=2600 + 16 * n, y_s1=1, axes=1,
                          op=AluOp.ADD, op0=AluOp.BYPASS))
    for op, dtype in ((AluOp.MAX, DType.INT8), (AluOp.MIN, DType.INT32), (AluOp.ADD, DType.INT32)):
        todo.append(legal(ref, "red", **ALL, n2=9, **flat("x", 512, dtype), y_addr=3000 + 4 * op, y_type=DType.INT32,
                          axes=3, op=op, op0=AluOp.XOR, a_mode=Mode.IMM, a=85, int=True))
    todo.append(legal(ref, "alu", **ALL, n2=9, **flat("x", 3100), **flat("y", 3100), op0=AluOp.SUB, op1=AluOp.MUL,
                      rev0=True, a_mode=Mode.PARTITION, a=200 | DType.FP16 << 18, b_mode=Mode.PARTITION, b_addr=77,
                      b_type=DType.INT8))
    todo.append(legal(ref, "gen", p0=1, pn=3, n0=2, n1=2, n2=3, **flat("y", 3300, DType.UINT8), y_s0=6, y_s1=3,
                      base=2 ** 32 - 3, step_p=120, step0=60, step1=5, step2=1))
    todo.append(legal(ref, "gen", **ALL, n2=3, **flat("y", 3400, DType.BF16), base=0x12347FC1, const=True))
    run = Run(ref, todo, rng)
    run.compare()
    assert not run.traps and len(run.done_at) == len(todo)


@pytest.mark.parametrize("fold", [1, 2])
def test_no_bubble(fold):
    """Independent instructions back to back: one row every `fold` cycles, also from one memory to the other.

    A reduction and a few random instructions follow.
    """
    rng = generator(f"test_no_bubble {fold}")
    ref, rows = reference(fold, rng), 7
    kinds = [{"b_mode": Mode.TENSOR, **flat("b", 512)}, {"x_space": 1, "b_mode": Mode.IMM, "b_imm": 0x3F000000},
             {"a": 0xC0000000, "b_mode": Mode.IMM, "b_imm": 0x41200000},
             {"b_mode": Mode.TENSOR, **flat("b", 0), "b_space": 1}]
    todo = [legal(ref, "alu", **{**ALL, "n2": rows, **flat("x", 256), **flat("y", 1024 + 64 * i), "op0": AluOp.MUL,
                                 "a_mode": Mode.IMM, "a": 0x40000000, "op1": AluOp.ADD, **k}) for i, k in enumerate(kinds)]
    todo.append(legal(ref, "red", **ALL, n1=3, n2=9, **flat("x", 128), x_s1=9, y_addr=2048, y_s1=1, axes=1,
                      op=AluOp.ADD))
    run = Run(ref, todo + program(rng, ref, 4, elements=10)[0], rng)
    run.compare()
    assert np.diff(run.done_at[:4]).tolist() == [rows * fold] * 3


def test_reduction_rate():
    """An output of n elements takes the time of n + 7 rows, and no less than 19 cycles and 7 rows."""
    rng = generator("test_reduction_rate")
    ref, fold = reference(4, rng), 4
    todo = [legal(ref, "red", **ALL, n1=2, n2=n, **flat("x", 0), y_addr=1024 + 16 * i + 4 * n, y_s1=1, axes=1,
                  op=AluOp.ADD) for n in (2, 24) for i in range(3)]
    run = Run(ref, todo, rng)
    run.compare()
    times = np.diff(run.done_at).tolist()
    assert times[:2] == [2 * (19 + 7 * fold)] * 2 and times[3:] == [2 * (24 + 7) * fold] * 2


def test_order():
    """`nop` and `mark` complete after everything before them; the engine says when it is idle."""
    rng = generator("test_order")
    ref = reference(4, rng)
    alu = {**ALL, "n2": 6, **flat("x", 0), "op0": AluOp.ABS}
    todo = [legal(ref, "alu", **alu, **flat("y", 512)), legal(ref, "nop"), legal(ref, "mark"),
            legal(ref, "alu", **alu, **flat("y", 640)), legal(ref, "mark")]
    run = Run(ref, todo, rng)
    run.compare()
    assert len(run.done_at) == 5 and run.done_at == sorted(run.done_at)
    assert run.last_write <= run.done_at[3] < run.done_at[4]
    assert run.busy_at_end == [True, False]


def test_traps():
    """Accesses beyond the memories are reported with instruction and address; the rest of the program runs."""
    rng = generator("test_traps")
    ref = reference(4, rng)
    cfg, word = ref.config, ref.word
    alu = {**ALL, "op0": AluOp.ABS, "op1": AluOp.BYPASS}
    good = legal(ref, "alu", **alu, n2=5, **flat("x", 0), **flat("y", 1024))
    bad = [word("alu", **alu, n2=3, **flat("x", cfg.sbuf_bytes - 8), **flat("y", 2048)),
           word("alu", **alu, n2=3, **flat("x", 0), **flat("y", cfg.sbuf_bytes - 4)),
           word("alu", **alu, n2=2, **flat("x", cfg.psum_bytes), x_space=1, **flat("y", 2048)),
           word("alu", **alu, n2=2, **flat("x", 0), **flat("y", 2048), a_mode=Mode.PARTITION, a=cfg.sbuf_bytes + 16)]
    run = Run(ref, [*bad, good], rng)
    assert len(run.done_at) == 5
    assert {(i, a) for _, i, a in run.traps} == {
        (0, cfg.sbuf_bytes), (1, cfg.sbuf_bytes), (1, cfg.sbuf_bytes + 4), (2, cfg.psum_bytes),
        (2, cfg.psum_bytes + 4), (3, cfg.sbuf_bytes + 16)}
    assert {c for c, _, _ in run.traps} == {Trap.ADDRESS}
    assert np.array_equal(run.sbuf[:, 1024:1044], ref.sbuf.data[:, 1024:1044])
