"""Meaning of the DMA instructions: bytes move, nothing is converted."""

import numpy as np

from isa.dtypes import DType
from isa.operands import DramOperand, Operand, Scalar, check_distinct, sizes, to_bits, to_bytes


def _dram(machine, values, access, size):
    shape = (values["pn"], *sizes(values))
    strides = [values["d_sp"], *(values[f"d_s{d}"] for d in range(3))]
    return DramOperand(machine, values["d_addr"], strides, shape, size, access)


def ld(machine, values, access):
    """SBUF x[p, i, j, k] = DRAM d[p, i, j, k]; the stream order changes nothing."""
    x = Operand(machine, values, "x", access)
    x.write(to_bits(_dram(machine, values, access, x.dtype.size_bytes).read()))


def st(machine, values, access):
    """DRAM d[p, i, j, k] = SBUF x[p, i, j, k]."""
    x = Operand(machine, values, "x", access)
    size = x.dtype.size_bytes
    _dram(machine, values, access, size).write(to_bytes(x.read(), size))


def mv(machine, values, access):
    """SBUF to SBUF through a linear stream of elements."""
    x = Operand(machine, values, "x", access)
    parts = slice(values["q0"], values["q0"] + values["qn"])
    y = Operand(machine, values, "y", access, sizes(values, "m"), parts, x.dtype)
    count = values["pn"] * np.prod(x.shape), values["qn"] * np.prod(y.shape)
    if count[0] != count[1]:
        access.fail(f"the source has {count[0]} elements, the destination {count[1]}")
    y.check_overlap(x, in_place=False)
    bits = x.read()
    stream = (np.moveaxis(bits, 0, -1) if values["x_inner"] else bits).ravel()
    if values["y_inner"]:
        y.write(np.moveaxis(stream.reshape(*y.shape, values["qn"]), -1, 0))
    else:
        y.write(stream.reshape(values["qn"], *y.shape))


def cp(machine, values, access):
    """DRAM e[i, j, k] = DRAM d[i, j, k]."""
    size = DType(values["x_type"]).size_bytes
    source, target = (DramOperand(machine, values[f"{n}_addr"], [values[f"{n}_s{d}"] for d in range(3)],
                                  sizes(values), size, access) for n in "de")
    same = np.array_equal(source.at, target.at)
    if not same and np.intersect1d(source.at, target.at).size:
        access.fail("the destination overlaps the source and is not in place")
    target.write(source.read())


def _rows(machine, values, access, size):
    """The row numbers' operand, and [(partition, its row's DRAM operand)] without those that are skipped.

    The SBUF operand must exist for skipped rows, too.
    """
    x = Operand(machine, values, "x", access)
    machine.sbuf.check(x.at, access, x.parts)
    index = Scalar(machine, values, values["i_addr"], DType.INT32, access)
    shape, rows = sizes(values), []
    contiguous = (shape[1] * shape[2], shape[2], 1)
    for p, row in enumerate(index.read(), values["p0"]):
        if row < values["row_limit"]:
            address = values["d_addr"] + int(row) * values["row_stride"] * size
            rows.append((p, DramOperand(machine, address, contiguous, shape, size, access)))
        elif not values["skip"]:
            access.fail(f"partition {p} names row {row}; the limit is {values['row_limit']}")
    return index, rows


def gat(machine, values, access):
    """SBUF x[p] = DRAM row index[p]."""
    size = DType(values["x_type"]).size_bytes
    index, rows = _rows(machine, values, access, size)
    x = Operand(machine, values, "x", access)
    x.check_overlap(index, in_place=True)
    x.check_distinct()  # skipped rows, too
    for p, row in rows:
        Operand(machine, values, "x", access, parts=slice(p, p + 1)).write(to_bits(row.read())[None])


def sca(machine, values, access):
    """DRAM row index[p] = SBUF x[p]."""
    size = DType(values["x_type"]).size_bytes
    _, rows = _rows(machine, values, access, size)
    if rows:
        check_distinct(np.stack([row.at for _, row in rows]), access)
    for p, row in rows:
        row.write(to_bytes(Operand(machine, values, "x", access, parts=slice(p, p + 1)).read()[0], size))
