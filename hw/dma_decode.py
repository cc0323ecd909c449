"""DMA instructions to the commands of a queue's two ends."""

from types import SimpleNamespace

from amaranth import Signal

from hw.dma_block import COMMAND
from hw.interfaces import fields
from hw.tensor import size_log2
from isa.table import BY_NAME

OPS = ("ld", "st", "mv", "cp", "gat", "sca")


def decode(m, payload):
    """Of an INSN: `source` and `sink` commands, `is_` (op -> bit), `rows`, `from_dram`, `to_dram`, and the fields of
    `gat`. Combinational.

    The stream order of `ld` and `st` cannot be seen in memory, so they go along whichever axis is contiguous in DRAM,
    and an `ld` with a partition stride of zero reads once for all partitions.
    """
    f = {op: fields(payload.bits, BY_NAME[op]) for op in OPS}
    is_ = {op: Signal(name=f"is_{op}") for op in OPS}
    m.d.comb += [is_[op].eq(payload.bits[:8] == BY_NAME[op].opcode) for op in OPS]
    source, sink = Signal(COMMAND), Signal(COMMAND)
    ld, mv, cp = f["ld"], f["mv"], f["cp"]
    rows = is_["gat"] | is_["sca"]
    for c, side, shape, drams in ((source, "x", "n", "d"), (sink, "y", "m", "e")):
        first = ("p0", "pn") if side == "x" else ("q0", "qn")
        inner = getattr(mv, f"flag_{side}_inner")
        # ld and st; the fields of the SBUF operand are where gat, sca and the source of mv have them
        m.d.comb += [
            c.dram.eq(ld.d_addr), c.dsp.eq(ld.d_sp), *(c[f"ds{d}"].eq(getattr(ld, f"d_s{d}")) for d in range(3)),
            c.addr.eq(ld.x_addr), *(c[f"xs{d}"].eq(getattr(ld, f"x_s{d}")) for d in range(3)),
            *(c[f"n{d}"].eq(getattr(ld, f"n{d}")) for d in range(3)), c.p0.eq(ld.p0), c.pn.eq(ld.pn),
            c.size.eq(size_log2(ld.x_type)), c.inner.eq((ld.d_s2 != 1) & (ld.d_sp != 0) & (ld.flag_inner | (ld.d_sp == 1))),
            c.serial.eq(0), c.same.eq(is_["ld"] & (ld.d_sp == 0) & (ld.pn != 0)), c.rows.eq(rows),
            c.index.eq(payload.index)]
        with m.If(is_["mv"]):
            m.d.comb += [
                c.addr.eq(getattr(mv, f"{side}_addr")), *(c[f"xs{d}"].eq(getattr(mv, f"{side}_s{d}")) for d in range(3)),
                *(c[f"n{d}"].eq(getattr(mv, f"{shape}{d}")) for d in range(3)), c.p0.eq(getattr(mv, first[0])),
                c.pn.eq(getattr(mv, first[1])), c.inner.eq(inner), c.serial.eq(~inner)]
        with m.If(is_["cp"]):
            m.d.comb += [
                c.dram.eq(getattr(cp, f"{drams}_addr")), *(c[f"ds{d}"].eq(getattr(cp, f"{drams}_s{d}")) for d in range(3)),
                *(c[f"n{d}"].eq(getattr(cp, f"n{d}")) for d in range(3)), c.size.eq(size_log2(cp.x_type)),
                c.addr.eq(0), *(c[f"xs{d}"].eq(0) for d in range(3)), c.p0.eq(0), c.pn.eq(0), c.inner.eq(0)]
        with m.If(rows):  # offsets inside a row, which is contiguous
            m.d.comb += [c.dram.eq(0), c.dsp.eq(0), c.ds0.eq((ld.n1 + 1) * (ld.n2 + 1)), c.ds1.eq(ld.n2 + 1), c.ds2.eq(1),
                         c.inner.eq(0)]
    return SimpleNamespace(
        source=source, sink=sink, is_=is_, rows=rows, gat=f["gat"], dma=payload.bits[6] & ~payload.bits[7],
        from_dram=is_["ld"] | is_["cp"] | is_["gat"], to_dram=is_["st"] | is_["cp"] | is_["sca"])
