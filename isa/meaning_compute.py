"""Meaning of the tensor, activation and vector instructions, in terms of `isa.numerics` alone."""

import numpy as np

from isa import activation
from isa import numerics as num
from isa.dtypes import DType
from isa.operands import Operand, Scalar, sizes, to_bits, walk
from isa.ops import AluOp
from isa.table import Acc, Mode

MASK = 0xFFFFFFFF


def mm(machine, values, access):
    """psum[M, F] = or += stationary[K, M]^T . moving[K, F]."""
    pe = machine.config.pe
    parts = slice(values["p0"], values["p0"] + values["pn"])
    if not values["keep"]:
        dtype = DType(values["w_type"])
        at = walk(values["w_addr"], (values["w_s"],), (values["mn"],), dtype.size_bytes)
        tile = to_bits(machine.sbuf.read(parts, at, access))
        machine.stationary = (parts, values["m0"], values["mn"], tile, dtype)
    if machine.stationary is None:
        access.fail("`keep` with no stationary tile in the array")
    rows, m0, mn, tile, dtype = machine.stationary
    if (rows, m0, mn) != (parts, values["m0"], values["mn"]):
        access.fail("`keep` with rows or columns other than those of the tile in the array")
    x = Operand(machine, values, "x", access)
    product = num.matmul(tile, dtype, x.read().reshape(values["pn"], -1), x.dtype, pe)
    result = DType.INT32 if pe == "int8" else DType.FP32
    y = Operand(machine, {**values, "y_space": 1}, "y", access, parts=slice(m0, m0 + mn), dtype=result)
    product = product.reshape(mn, *y.shape)
    if values["accumulate"]:
        product = num.psum_accumulate(y.read(own_queue_ok=True), product, pe)
    y.write(product)


def _scalar(machine, values, access, mode, reference, load, destinations):
    """A scalar operand as [pn, 1, 1, 1] (or a 0-d immediate) after `load`; None where absent."""
    if mode == Mode.NONE:
        return None
    if mode == Mode.IMM:
        return np.uint32(reference)
    scalar = Scalar.of(machine, values, reference, access)
    for destination in destinations:
        destination.check_overlap(scalar, in_place=isinstance(destination, Scalar))
    return load(scalar.read(), scalar.dtype)[:, None, None, None]


def act(machine, values, access):
    """y = func(x*scale + bias), with the running sum."""
    x, y = (Operand(machine, values, name, access) for name in "xy")
    targets = [y]
    if values["acc_write"]:
        targets.append(Scalar(machine, values, values["acc_addr"], DType.FP32, access))
        if np.intersect1d(y.at, targets[1].at).size:
            access.fail("the running sum's place is one of y's")
    for target in targets:
        target.check_overlap(x, in_place=True)
    v = num.to_fp32(x.read(), x.dtype)
    scale = _scalar(machine, values, access, values["scale_mode"], values["scale"], num.to_fp32, targets)
    bias = _scalar(machine, values, access, values["bias_mode"], values["bias"], num.to_fp32, targets)
    if scale is not None:
        v = num.mul(v, scale)
    if bias is not None:
        v = num.add(v, bias)
    func = values["func"]
    if func >= 8:
        if func - 8 not in machine.tables:
            access.fail(f"table slot {func - 8} was never loaded")
        v = activation.evaluate(machine.tables[func - 8], v)
    else:
        v = activation.builtin(func, v)
    parts = x.parts
    if (values["acc"] == Acc.CONTINUE or values["acc_write"] and values["acc"] == Acc.NONE) \
            and not machine.summing[parts].all():
        access.fail(f"the running sum of partition {parts.start + int(np.argmin(machine.summing[parts]))} was never started")
    y.write(num.from_fp32(v, y.dtype))
    if values["acc"] != Acc.NONE:
        total = num.reduce_add(v.reshape(v.shape[0], -1))
        if values["acc"] == Acc.CONTINUE:
            total = num.add(machine.running_sum[parts], total)
        machine.running_sum[parts], machine.summing[parts] = total, True
    if values["acc_write"]:
        targets[1].write(machine.running_sum[parts])


def tab(machine, values, access):
    """Load a table slot from one partition."""
    at = walk(values["x_addr"], (1,), (activation.SLOT_WORDS,), 4)
    parts = slice(values["p0"], values["p0"] + 1)
    machine.tables[values["slot"]] = to_bits(machine.sbuf.read(parts, at, access))[0]


def _binary(op, x, a, rev, integer):
    if a is None:
        a = np.uint32(0)
    if rev and op not in (AluOp.BYPASS, AluOp.ABS):
        x, a = np.broadcast_arrays(a, x)
    return (num.alu_int if integer else num.alu_float)(AluOp(op), x, a)


def _store(y, v, integer):
    y.write(num.int_convert(v, y.dtype) if integer else num.from_fp32(v, y.dtype))


def alu(machine, values, access):
    """y = (x op0 a) op1 b."""
    integer = values["int"]
    load = num.load if integer else num.to_fp32
    x, y = (Operand(machine, values, name, access) for name in "xy")
    y.check_overlap(x, in_place=True)
    raw = x.read()
    a = _scalar(machine, values, access, values["a_mode"], values["a"], load, [y])
    if values["b_mode"] == Mode.TENSOR:
        operand = Operand(machine, values, "b", access)
        y.check_overlap(operand, in_place=True)
        b = load(operand.read(), operand.dtype)
    else:
        reference = values["b_imm"] if values["b_mode"] == Mode.IMM else values["b_addr"] | values["b_type"] << 18
        b = _scalar(machine, values, access, values["b_mode"], reference, load, [y])
    if values["op0"] == values["op1"] == AluOp.BYPASS and x.dtype == y.dtype:
        y.write(raw)
        return
    v = _binary(values["op0"], load(raw, x.dtype), a, values["rev0"], integer)
    _store(y, _binary(values["op1"], v, b, values["rev1"], integer), integer)


def red(machine, values, access):
    """y = reduce(x op0 a) over the last axes."""
    integer, axes = values["int"], values["axes"]
    load = num.load if integer else num.to_fp32
    x = Operand(machine, values, "x", access)
    y = Operand(machine, values, "y", access, sizes(values)[:3 - axes])
    y.check_overlap(x, in_place=False)
    a = _scalar(machine, values, access, values["a_mode"], values["a"], load, [y])
    v = _binary(values["op0"], load(x.read(), x.dtype), a, values["rev0"], integer)
    v = v.reshape(v.shape[0], *y.shape, -1)
    _store(y, num.reduce(AluOp(values["op"]), v, integer), integer)


def sel(machine, values, access):
    """y = x where predicate b is non-zero."""
    x, b, y = (Operand(machine, values, name, access) for name in "xby")
    y.check_overlap(x, in_place=True)
    y.check_overlap(b, in_place=True)
    p = b.read()
    chosen = (num.to_fp32(p, b.dtype) & 0x7FFFFFFF) != 0 if b.dtype.is_float else p != 0
    y.write(x.read(), mask=chosen)


def gen(machine, values, access):
    """y = an affine function of the indices, or a constant bit pattern."""
    y = Operand(machine, values, "y", access)
    shape = (values["pn"], *y.shape)
    if values["const"]:
        y.write(np.full(shape, values["base"] & ((1 << 8 * y.dtype.size_bytes) - 1), np.uint32))
        return
    total = np.full(shape, values["base"], np.int64)
    for axis, step in enumerate(("step_p", "step0", "step1", "step2")):
        steps = np.arange(shape[axis], dtype=np.int64) * values[step]
        total += steps.reshape([-1 if a == axis else 1 for a in range(4)])
    bits = (total & MASK).astype(np.uint32)
    _store(y, bits if y.dtype.is_int else num.to_fp32(bits, DType.INT32), y.dtype.is_int)
