"""The activation engine on memories that stall, against the golden machine; its rate; its traps."""

import numpy as np

from hw.act_lane import AT_OUT
from isa import activation
from isa.config import preset
from isa.dtypes import DType
from isa.encode import encode
from isa.ops import Func
from isa.registers import Trap
from isa.table import Acc, Mode
from tests.hw.activation_bench import BASE, compare, execute, golden, load_table, memories
from tests.hw.datapath import generator

TINY = preset("tiny")
FOLD1, FOLD4 = TINY.with_(lane_fold=1), TINY.with_(lane_fold=4)


def act(n, y_addr, x_addr=0, **values):
    """y[0:n] = x[0:n] on all partitions, contiguous; fp32 to fp32 unless told otherwise."""
    return encode("act", **{"pn": 4, "n2": n, "x_addr": x_addr, "x_s2": 1, "y_addr": y_addr, "y_s2": 1, **values})


def test_running_sums():
    """Fewer elements than partial sums, exactly as many, more; start, continue, store later, some partitions only."""
    rng = generator("sums")
    config = FOLD4
    sbuf, psum = memories(config, rng)
    program, at = [act(1, BASE, acc=Acc.START)], BASE + 16  # all sums
    for i, n in enumerate((1, 7, 8, 9, 16, 21)):
        program.append(act(n, at, x_addr=64 * i, func=Func.IDENTITY, acc=Acc.START if i % 3 == 0 else Acc.CONTINUE,
                           acc_write=i % 2, acc_addr=at + 4 * n, p0=i % 3, pn=2))
        program.append(act(3, at + 4 * n + 4, x_addr=8, func=Func.SQUARE))  # does not disturb the sums
        at += 4 * n + 16
    program.append(act(2, at, acc_write=1, acc_addr=at + 8))
    compare(config, sbuf, psum, program)


def test_in_place_and_extreme_shapes():
    rng = generator("shapes")
    config = FOLD4
    sbuf, psum = memories(config, rng)
    half = BASE + 64
    program = [
        act(9, BASE, x_addr=BASE, func=Func.ABS),                                       # in place, same size
        act(11, half, x_addr=half, x_type=DType.INT8, y_type=DType.INT8, func=Func.RELU, scale_mode=Mode.IMM,
            scale=0x40000000),
        act(5, BASE + 128, x_addr=40, x_s2=0, func=Func.SIGN),                          # broadcast
        act(6, BASE + 256, x_addr=400, x_s2=-3, y_s2=-2, x_type=DType.FP16, y_type=DType.BF16),
        encode("act", p0=3, pn=1, n0=5, y_s0=1, y_addr=BASE + 300, x_space=1, x_s0=7, x_addr=4, x_type=DType.INT32),
        act(1, config.sbuf_bytes - 1, x_addr=BASE - 1, x_type=DType.FP8E4, y_type=DType.UINT8)]
    compare(config, sbuf, psum, program)


def test_rate():
    """A row every cycle, of one instruction and of the next; a scalar that is read costs a row."""
    rng = generator("rate")
    n = 64
    sbuf, psum = memories(FOLD1, rng)
    program = [act(n, BASE + 400 * i, x_addr=i * 8, y_type=DType.BF16, scale_mode=Mode.PARTITION, scale=4 * i,
                   bias_mode=Mode.IMM, bias=0x3F800000) for i in range(3)]
    done = compare(FOLD1, sbuf, psum, program).done
    assert done[0] <= n + 1 + AT_OUT + 20
    assert np.all(np.diff(done) <= n + 1), np.diff(done)


def test_traps():
    """Accesses outside are suppressed and reported with their instruction; the rest of the program is right."""
    rng = generator("traps")
    config = FOLD4
    sbuf, psum = memories(config, rng)
    end = config.sbuf_bytes
    good = [act(5, BASE), act(7, BASE + 100, func=Func.SQUARE)]
    program = [good[0], act(1, end), good[1], encode("mark"),
               act(2, BASE + 200, x_addr=config.psum_bytes - 4, x_space=1), encode("mark"),
               act(1, BASE + 300, scale_mode=Mode.PARTITION, scale=end + 4)]
    result = execute(config, sbuf, psum, program)
    assert result.traps == [(Trap.ADDRESS, 1, end), (Trap.ADDRESS, 4, config.psum_bytes), (Trap.ADDRESS, 6, end + 4)]
    want = golden(config, sbuf, psum, good)
    assert np.array_equal(result.sbuf[:, :BASE + 200], want[:, :BASE + 200])
    assert np.array_equal(result.sbuf[:, BASE + 400:], want[:, BASE + 400:])


def test_table_and_header():
    """`tab` from the last partition, into the last slot; special inputs use the four header words."""
    rng = generator("header")
    sbuf, psum = memories(FOLD4, rng)
    special = np.array([0, 0x80000000, 1, 0x7F800000, 0xFF800000, 0x7F800001, 0xBF800000, 0x3F800000], np.uint32)
    sbuf[:, BASE:BASE + 32] = special.view(np.uint8)
    program = [load_table(sbuf, "reciprocal", 3, 3),
               act(8, BASE + 64, x_addr=BASE, func=11, acc=Acc.START, acc_write=1, acc_addr=BASE + 96)]
    result = compare(FOLD4, sbuf, psum, program)
    assert result.done[0] < activation.SLOT_WORDS + 20
