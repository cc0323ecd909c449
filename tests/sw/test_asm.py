"""The assembler: what operands mean, and that programs run."""

from pathlib import Path

import numpy as np
import pytest

from isa.config import preset
from isa.encode import decode
from isa.ops import AluOp, Func
from isa.table import Mode
from sw.asm import assemble, assemble_file
from sw.device import Device

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = """.config tiny
.const two 2.0
.const N 16
.tensor A dram bf16 [8, 64] input
.tensor V dram bf16 [64] input
.tensor xs sbuf bf16 [4, 2, N] @0x100
.tensor ws sbuf bf16 [4, 4]
.tensor fs sbuf fp32 [4, N]
.tensor one sbuf fp32 [4, 1]
.tensor acc psum fp32 [4, N]
"""


def one(text, head=HEAD):
    """Fields of the only instruction in `text`."""
    program = assemble(head + text)
    (word,) = [w for words in program.queues.values() for w in words]
    instruction, v = decode(word)
    return v | {"name": instruction.name}


def has(v, **fields):
    assert {k: v[k] for k in fields} == fields


def test_numbers():
    v = one("pe mm p=1:4 m=0:3 shape=(2, 8) x=0x100:bf16:(0, 8, 1) w=0x40:fp16:2 y=0x20:(0, 8, 1) accumulate")
    has(v, p0=1, pn=3, m0=0, mn=3, n0=1, n1=2, n2=8, x_addr=0x100, x_type=1, x_s0=0, x_s1=8, x_s2=1, w_addr=0x40,
        w_type=2, w_s=2, y_addr=0x20, y_s1=8, y_s2=1, accumulate=True, keep=False)


def test_names_give_address_type_strides_shape_and_partitions():
    v = one("vec alu x=xs y=xs:fp16")
    has(v, p0=0, pn=4, n0=1, n1=2, n2=16, x_addr=0x100, x_type=1, y_type=2, x_s0=0, x_s1=16, x_s2=1, y_s1=16)


def test_reference_with_slices():
    v = one("dma0 ld x=xs[1:3, 1] d=A[4:6, 8:24]")
    has(v, p0=1, pn=2, n0=1, n1=1, n2=16, x_addr=0x100 + 32, x_s2=1, d_addr=2 * (4 * 64 + 8), d_sp=64, d_s2=1)


def test_steps_and_reversal():
    v = one("dma0 ld x=xs[0:4, 0, 0:8] d=A[7:3:-1, 63:47:-2]")
    has(v, d_addr=2 * (7 * 64 + 63), d_sp=-64, d_s2=-2, n2=8, pn=4)


def test_broadcast_axis():
    has(one("dma0 ld x=xs[0:4, 0] d=V[*, 16:32]"), d_addr=1024 + 32, d_sp=0, d_s2=1, pn=4, n2=16)


def test_first_axis_of_dram_runs_over_the_partitions():
    has(one("dma0 ld x=xs[0:4, 0, 0:1] d=V[8:12]"), d_addr=1024 + 16, d_sp=1, pn=4, n2=1)


def test_explicit_parts_override():
    v = one("dma0 ld p=0:2 shape=4 x=xs:bf16:2 d=A:(0, 3)")
    has(v, p0=0, pn=2, n2=4, x_addr=0x100, x_s2=2, d_addr=0, d_sp=0, d_s2=3)


def test_contiguous_by_default():
    v = one("dma0 ld p=0:2 shape=(3, 4) x=0x10:bf16 d=64")
    has(v, x_s0=0, x_s1=4, x_s2=1, d_sp=12, d_s1=4, d_s2=1)


def test_mm_takes_columns_from_its_tile():
    has(one("pe mm x=xs[0:4, 0] w=ws y=acc"), p0=0, pn=4, m0=0, mn=4, n2=16, w_s=1, y_addr=0)
    has(one("pe mm x=xs[0:4, 0] y=acc keep"), w_addr=0, keep=True, mn=4)


def test_scalars():
    v = one("act act x=acc y=fs scale=two bias=part:one func=relu")
    has(v, scale_mode=Mode.IMM, scale=0x40000000, bias_mode=Mode.PARTITION, func=Func.RELU, x_space=1, y_space=0)
    assert v["bias"] >> 18 == 0 and v["bias"] & 0x3FFFF == v["y_addr"] + 64
    has(one("act act x=fs y=fs scale=0x7fc00001 func=table2"), scale=0x7FC00001, func=10)
    has(one("act act x=fs y=fs scale=-inf bias=-0.0"), scale=0xFF800000, bias=0x80000000)
    has(one("act act x=fs y=fs bias=2"), bias=0x40000000)


def test_b_has_four_modes():
    has(one("vec alu x=fs y=fs op0=abs"), b_mode=Mode.NONE, a_mode=Mode.NONE)
    has(one("vec alu x=fs y=fs op1=add b=-1.5"), b_mode=Mode.IMM, b_imm=0xBFC00000, op1=AluOp.ADD)
    has(one("vec alu x=fs y=fs op1=add b=(N - 1) * 2"), b_imm=0x41F00000)
    has(one("vec alu x=fs y=fs op1=mul b=part:0x40:fp32"), b_mode=Mode.PARTITION, b_addr=0x40, b_type=0)
    has(one("vec alu x=fs y=fs op1=mul b=acc rev1"), b_mode=Mode.TENSOR, b_space=1, b_s2=1, rev1=True)
    has(one("vec alu x=fs y=fs op1=mul b=0x80:fp32:0"), b_mode=Mode.TENSOR, b_addr=0x80, b_s2=0)


def test_integer_class():
    v = one("vec alu p=0:1 x=0:int32 y=0:int32 op0=and a=-2 op1=shl b=3 int")
    has(v, a=0xFFFFFFFE, b_imm=3, int=True, op0=AluOp.AND, op1=AluOp.SHL)


def test_reduction_aligns_y_with_the_axes_that_stay():
    v = one(".tensor r sbuf fp32 [4, 2]\nvec red x=xs y=r op=add axes=1")
    has(v, n1=2, n2=16, y_s0=0, y_s1=1, y_s2=0, axes=1)
    has(one("vec red x=xs y=one[0:4, 0] op=max axes=3"), y_s0=0, axes=3)


def test_mv_has_two_sides():
    v = one("dma0 mv x=ws y=xs[0:2, 0, 0:8] y_inner")
    has(v, pn=4, n2=4, q0=0, qn=2, m2=8, y_addr=0x100, y_inner=True, x_inner=False)


def test_cp_takes_the_type_of_its_tensors():
    has(one(".tensor B dram bf16 [8, 64] output\ndma0 cp d=A e=B"), x_type=1, n1=8, n2=64, d_s1=64, e_addr=1152)


def test_gather_fields():
    v = one("dma0 gat x=ws d_addr=A row_stride=64 row_limit=8 i_addr=one skip")
    has(v, d_addr=0, row_stride=64, row_limit=8, skip=True, n2=4)


def test_gen_counts_down():
    has(one("vec gen y=fs base=-1 step2=-3"), base=0xFFFFFFFF, step2=0xFFFFFFFD)


def test_raw_fields_override():
    has(one("dma0 ld x=ws d=A[0:4, 0:4] x_s0=7 wait3=9"), x_s0=7, wait3=9, wait_mask=0)


def test_waits():
    program = assemble(HEAD + """
a: dma0 ld x=ws d=A[0:4, 0:4]
b: dma0 nop
c: c2: dma1 nop after a
   pe nop after a, b, c
   dma0 nop after b wait=(ext:2, dma1:1)
""")
    _, v = decode(program.queues["pe"][0])
    has(v, wait_mask=0b11000, wait3=2, wait4=1)
    _, v = decode(program.queues["dma0"][2])
    has(v, wait_mask=0b10011000, wait3=2, wait4=1, wait7=2)


def test_source_map():
    program = assemble(HEAD + "pe nop\n\nact nop tag=5\n.source 3 \"net.py:7\"\n", file="f.sys")
    assert program.source == ["f.sys:11", "", "", "net.py:7", "", "f.sys:13"]
    assert [decode(program.queues[q][0])[1]["tag"] for q in ("pe", "act")] == [0, 5]


def test_constants_and_placement():
    program = assemble(""".config small
.tensor a dram int8 [3] const
.tensor b dram fp32 [2, 2] const
.tensor c dram bf16 [4] const
.tensor d dram uint8 [4] const
.init a 1 -2
.init a 3
.init b fill 0.25
.init c iota
.init d hex 00ff 10 20
dma0 nop
""")
    assert program.tensors["b"].offset == 64 and program.config == preset("small")
    assert program.constants["a"].tolist() == [1, -2, 3] and program.constants["b"].tolist() == [[0.25] * 2] * 2
    assert program.constants["c"].astype(float).tolist() == [0, 1, 2, 3]
    assert program.constants["d"].tolist() == [0, 255, 16, 32]


def test_given_configuration():
    assert assemble("pe nop", config=preset("edge")).config == preset("edge")
    assert assemble(".config mine lanes=8 pe=bf16 sbuf_kib=8\npe nop").config.lanes == 8


def test_examples_on_golden():
    rng = np.random.default_rng(1)
    program = assemble_file(EXAMPLES / "add.sys")
    a, b = (rng.standard_normal((4, 16)).astype(np.float32) for _ in range(2))
    y = Device(program.config, seed=2).run(program, {"a": a, "b": b}).outputs["y"]
    assert np.array_equal(y, a + b)
    program = assemble_file(EXAMPLES / "relu_matmul.sys")
    x = rng.integers(-8, 8, (8, 32)).astype(program.tensors["x"].dtype.numpy)
    y = Device(program.config, seed=2).run(program, {"x": x}).outputs["y"]
    w, bias = (program.constants[n].astype(np.float64) for n in ("w", "bias"))
    assert np.array_equal(y, np.maximum(w.T @ x.astype(np.float64) + bias[:, None], 0)) and y.any()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.sys")), ids=lambda p: p.name)
def test_every_example_assembles(path):
    assert assemble_file(path).queues


def test_the_manual_shows_what_assembles():
    text = (EXAMPLES.parent / "docs" / "assembly.md").read_text(encoding="utf-8")
    blocks = text.split("```asm\n")[1:]
    assert blocks
    for block in blocks:
        program = assemble(block.split("```")[0])
        x = np.random.default_rng(1).standard_normal((8, 32)).astype(program.tensors["A"].dtype.numpy)
        y = Device(program.config, seed=1).run(program, {"A": x}).outputs["y"]
        assert np.array_equal(y, np.maximum(np.maximum(x[:4].astype(np.float32) * np.float32(0.5), 0), -1.5) + 3)
