"""The systolic array: N x N cells, rows skewed by the adder's latency, results aligned to whole rows."""

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.cell import place
from hw.convert import PE_WIDTH
from hw.delay import delayed
from hw.pe import PE

ROW = "array_row"  # module name of a row, emitted once


class ArrayRow(wiring.Component):
    """One row of cells. x, valid, swap, w, shift enter on the left; the sums pass from above to below."""

    def __init__(self, config):
        self.config = config
        self.width = PE_WIDTH[config.pe]
        n = config.lanes
        super().__init__({"x": In(self.width), "x_valid": In(1), "swap": In(1), "w": In(self.width), "w_shift": In(1),
                          "above": In(32 * n), "below": Out(32 * n)})

    def elaborate(self, platform):
        m = Module()
        x, valid, swap, w = self.x, self.x_valid, self.swap, self.w
        sums = []
        for c in range(self.config.lanes):
            cell = place(m, f"pe_{c}", PE(self.config.pe), f"pe_{self.config.pe}")
            m.d.comb += [cell.x.eq(x), cell.x_valid.eq(valid), cell.swap.eq(swap), cell.w_in.eq(w),
                         cell.w_shift.eq(self.w_shift), cell.sum_in.eq(self.above[32 * c:32 * c + 32])]
            x, valid, swap, w = cell.x_out, cell.x_valid_out, cell.swap_out, cell.w_out
            sums.append(cell.sum_out)
        m.d.comb += self.below.eq(Cat(*sums))
        return m


class SystolicArray(wiring.Component):
    """Weight-stationary array.

    x, x_valid: a moving column, one value a row, in the PE's format; `swap` with the first column of a tile makes the
    shadow weights the active ones. w, w_shift: one column of weights, a value a row, pushed into every row's
    shadow chain; the first one pushed ends farthest right. All inputs of one cycle belong together: a column pushed
    before the cycle of `swap` is in place for it, and after the swap the next push of a tile that covers columns
    0..c must wait c cycles.
    sums: 32 bits a column, `latency` cycles after x. Always moving; a bubble is a cycle without x_valid.
    """

    def __init__(self, config):
        self.config = config
        cell = PE(config.pe)
        n = config.lanes
        self.width = cell.width
        self.latency = (n - 1) * cell.latency + cell.sum_delay + cell.latency + (n - 1)
        super().__init__({
            "x": In(n * cell.width), "x_valid": In(n), "swap": In(1),
            "w": In(n * cell.width), "w_shift": In(1),
            "sums": Out(32 * n)})

    def elaborate(self, platform):
        m = Module()
        n, width = self.config.lanes, self.width
        step = PE(self.config.pe).latency
        above = 0
        for r in range(n):
            part = slice(r * width, r * width + width)
            entry = Cat(self.x[part], self.w[part], self.x_valid[r], self.swap, self.w_shift)
            late = delayed(m, f"skew{r}", entry, r * step)
            row = place(m, f"row_{r}", ArrayRow(self.config), ROW)
            m.d.comb += [row.x.eq(late[:width]), row.w.eq(late[width:2 * width]), row.x_valid.eq(late[2 * width]),
                         row.swap.eq(late[2 * width + 1]), row.w_shift.eq(late[2 * width + 2]), row.above.eq(above)]
            above = row.below
        above = [above[32 * c:32 * c + 32] for c in range(n)]
        m.d.comb += self.sums.eq(Cat(delayed(m, f"align{c}", above[c], n - 1 - c) for c in range(n)))
        return m
