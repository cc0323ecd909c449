"""Corner-turn buffer: a byte stream along or across partitions on one side, SBUF rows on the other.

Two halves of 8 bus-wide entries a lane: one is filled while the other is emptied. `SbufSink` is filled by the stream
and written to SBUF, `SbufSource` the other way round.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.cell import place
from hw.dma_align import chunk_layout
from hw.dma_block import ENTRIES, block_layout
from hw.dma_piece import PieceWalker, WordWalker
from hw.interfaces import SBUF_READ_LATENCY, RowRead, RowWrite
from hw.tensor import lane_mask


class CornerLane(wiring.Component):
    """16 entries of `width` bytes: a write with byte enables a cycle, and an asynchronous read."""

    def __init__(self, width):
        self.width = width
        super().__init__({"w_entry": In(4), "w_data": In(8 * width), "w_bytes": In(width), "r_entry": In(4),
                          "r_data": Out(8 * width)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.entries = entries = memory.Memory(shape=8 * self.width, depth=2 * ENTRIES, init=[])
        w, r = entries.write_port(granularity=8), entries.read_port(domain="comb")
        m.d.comb += [w.addr.eq(self.w_entry), w.data.eq(self.w_data), w.en.eq(self.w_bytes), r.addr.eq(self.r_entry),
                     self.r_data.eq(r.data)]
        return m


class Halves(wiring.Component):
    """Hands blocks to the filling walker (`fill`) while a half is free, and to the emptying one (`drain`) once
    `filled` pulsed. `drained` frees the half. `starving`: nothing to drain; `full`: nothing to fill."""

    def __init__(self, config):
        layout = block_layout(config)
        super().__init__({"block": In(stream.Signature(layout)), "fill": Out(stream.Signature(layout)),
                          "drain": Out(stream.Signature(layout)), "filled": In(1), "drained": In(1),
                          "starving": Out(1), "full": Out(1), "idle": Out(1)})
        self.bits = layout.size

    def elaborate(self, platform):
        m = Module()
        m.submodules.pending = pending = fifo.SyncFIFO(width=self.bits, depth=2)
        used, whole, fill, drain = Signal(2), Signal(2), Signal(), Signal()
        m.d.comb += [
            self.fill.payload.eq(self.block.payload), self.fill.valid.eq(self.block.valid & (used != 2)),
            self.block.ready.eq(self.fill.ready & (used != 2)), fill.eq(self.fill.valid & self.fill.ready),
            pending.w_en.eq(fill), pending.w_data.eq(self.block.payload),
            self.drain.payload.eq(pending.r_data), self.drain.valid.eq(whole != 0),
            drain.eq(self.drain.valid & self.drain.ready), pending.r_en.eq(drain),
            self.starving.eq(whole == 0), self.full.eq(used == 2), self.idle.eq(used == 0)]
        m.d.sync += [used.eq(used + fill - self.drained), whole.eq(whole + self.filled - drain)]
        return m


def lane_cells(m, config):
    """The lanes' memories, emitted once."""
    return [place(m, f"lane{p}", CornerLane(config.axi_bytes), "systolith_corner_lane") for p in range(config.lanes)]


def rotate(value, amount_bytes, left):
    """`value` rotated by a number of bytes below its width."""
    n = len(value) // 8
    for bit in range((n - 1).bit_length()):
        shift = 8 << bit
        turned = Cat(value[-shift:], value[:-shift]) if left else Cat(value[shift:], value[:shift])
        value = Mux(amount_bytes[bit], turned, value)
    return value


def turn(piece, config):
    """Bytes by which a piece is rotated: its first byte's place in the entry, or its first lane's slot."""
    low = (config.axi_bytes - 1).bit_length()
    amount = Signal(low, name="turn")
    return amount, amount.eq(Mux(piece.inner, piece.lane << piece.size, piece.at))


def slot(value, lane, size, width):
    """Element of log2 `size` that a rotated piece holds for `lane`, low-aligned in 32 bits."""
    at = [8 * ((lane << s) % width) for s in range(3)]
    return Mux(size == 2, value[at[2]:at[2] + 32], Mux(size == 1, value[at[1]:at[1] + 16], value[at[0]:at[0] + 8]))


def spread(element, size):
    """A low-aligned element at every place of a word that it could take."""
    half = Mux(size == 0, element[:8].replicate(2), element[:16])
    return Mux(size == 2, element, half.replicate(2))


def ones(size):
    """Byte enables of an element of log2 `size`."""
    return Mux(size == 0, 1, Mux(size == 1, 3, 15))


class SbufSink(wiring.Component):
    """Blocks in; takes their bytes from a byte queue (`head`, `level`, `take`), a piece a cycle; writes SBUF, a word of
    all lanes a cycle. `allowed` masks lanes. `done` pulses in the cycle in which an instruction's last word is granted.
    """

    def __init__(self, config):
        self.config = config
        n = config.axi_bytes
        super().__init__({
            "block": In(stream.Signature(block_layout(config))), "port": Out(RowWrite(config.lanes, 16)),
            "head": In(8 * n), "level": In(range(2 * n + 1)), "take": Out(range(n + 1)), "allowed": In(config.lanes),
            "done": Out(1), "trap_valid": Out(1), "trap_index": Out(32), "trap_addr": Out(22)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.halves = halves = Halves(self.config)
        m.submodules.pieces = pieces = PieceWalker(self.config)
        m.submodules.words = words = WordWalker(self.config)
        connect(m, flipped(self.block), halves.block)
        connect(m, halves.fill, pieces.block)
        connect(m, halves.drain, words.block)
        lanes = lane_cells(m, self.config)
        self._fill(m, halves, pieces.out, lanes)
        self._store(m, halves, words.out, lanes)
        return m

    def _fill(self, m, halves, piece, lanes):
        """Take, rotate, register; one cycle later write."""
        config, width = self.config, self.config.axi_bytes
        low = (width - 1).bit_length()
        p, got, valid = piece.payload, Signal.like(piece.payload, name="got"), Signal()
        value, half = Signal(8 * width), Signal()
        amount, assign = turn(p, config)
        m.d.comb += [assign, piece.ready.eq(self.level >= p.count), halves.filled.eq(valid & got.end),
                     self.take.eq(Mux(piece.valid & piece.ready, p.count, 0))]
        m.d.sync += [valid.eq(piece.valid & piece.ready), got.eq(p), value.eq(rotate(self.head, amount, left=True))]
        with m.If(valid & got.end):
            m.d.sync += half.eq(~half)
        chosen, place_ = Signal(len(lanes)), Signal(width)
        m.d.comb += [
            chosen.eq(lane_mask(
                got.lane, Mux(got.same, got.others, Mux(got.inner, (got.count >> got.size) - 1, 0))[:7], len(lanes))),
            # Along a lane whole entries are written: what lies beyond the piece is never read.
            place_.eq(Mux(got.inner, ones(got.size) << got.at[:low], -1))]
        for i, lane in enumerate(lanes):
            element = spread(slot(value, i, got.size, width), got.size).replicate(width // 4)
            m.d.comb += [lane.w_entry.eq(Cat(got.at[low:], half)), lane.w_data.eq(Mux(got.inner, element, value)),
                         lane.w_bytes.eq(Mux(valid & chosen[i], place_, 0))]

    def _store(self, m, halves, word, lanes):
        """Read an entry, pick the word, register, write."""
        low = (self.config.axi_bytes - 1).bit_length()
        w, port, half, last = word.payload, self.port, Signal(), Signal()
        busy = Signal()  # the register holds a word, perhaps a suppressed one
        free = ~busy | ~port.valid | port.ready
        m.d.comb += [
            word.ready.eq(free), halves.drained.eq(word.valid & free & w.end), port.urgent.eq(halves.full),
            self.trap_valid.eq(word.valid & free & w.oob), self.trap_index.eq(w.index), self.trap_addr.eq(w.addr),
            self.done.eq(busy & last & (~port.valid | port.ready))]
        with m.If(free):
            m.d.sync += [busy.eq(word.valid), port.valid.eq(word.valid & ~w.oob), last.eq(w.last),
                         port.addr.eq(w.addr[2:]), port.bytes.eq(w.bytes),
                         port.lanes.eq(lane_mask(w.p0, w.pn, len(lanes)) & self.allowed)]
        with m.If(word.valid & free & w.end):
            m.d.sync += half.eq(~half)
        for i, lane in enumerate(lanes):
            m.d.comb += lane.r_entry.eq(Cat(w.at[low:], half))
            raw = lane.r_data.word_select(w.at[2:low], 32) if low > 2 else lane.r_data
            with m.If(free):
                m.d.sync += port.data[32 * i:32 * i + 32].eq(
                    Mux(w.unit, raw, spread((raw >> (w.at[:2] << 3))[:32], w.size)))


class SbufSource(wiring.Component):
    """Blocks in; reads SBUF, a word of all lanes a cycle; gives their bytes in stream order, a piece a cycle.
    Words outside the memory read as zero."""

    def __init__(self, config):
        self.config = config
        super().__init__({
            "block": In(stream.Signature(block_layout(config))), "port": Out(RowRead(config.lanes, 16)),
            "out": Out(stream.Signature(chunk_layout(config))), "idle": Out(1),
            "trap_valid": Out(1), "trap_index": Out(32), "trap_addr": Out(22)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.halves = halves = Halves(self.config)
        m.submodules.words = words = WordWalker(self.config)
        m.submodules.pieces = pieces = PieceWalker(self.config)
        connect(m, flipped(self.block), halves.block)
        connect(m, halves.fill, words.block)
        connect(m, halves.drain, pieces.block)
        lanes = lane_cells(m, self.config)
        self._fetch(m, halves, words.out, lanes)
        self._emit(m, halves, pieces.out, lanes)
        return m

    def _fetch(self, m, halves, word, lanes):
        """Request; what the answer is for travels beside it. The half has room for everything asked."""
        width = self.config.axi_bytes
        low = (width - 1).bit_length()
        w, port, half = word.payload, self.port, Signal()
        go = Signal()
        m.d.comb += [
            port.valid.eq(word.valid & ~w.oob), port.addr.eq(w.addr[2:]), port.urgent.eq(halves.starving),
            word.ready.eq(w.oob | port.ready), go.eq(word.valid & word.ready),
            self.trap_valid.eq(go & w.oob), self.trap_index.eq(w.index), self.trap_addr.eq(w.addr)]
        got, valid = w, go
        for stage in range(SBUF_READ_LATENCY):
            after, after_valid = Signal.like(w, name=f"asked{stage}"), Signal(name=f"asked{stage}_valid")
            m.d.sync += [after.eq(got), after_valid.eq(valid)]
            got, valid = after, after_valid
        m.d.comb += halves.filled.eq(valid & got.end)
        with m.If(valid & got.end):
            m.d.sync += half.eq(~half)
        place_ = Signal(width)
        m.d.comb += place_.eq(Mux(valid, Mux(got.unit, 15 << (got.at[2:low] << 2), ones(got.size) << got.at[:low]), 0))
        for i, lane in enumerate(lanes):
            raw = port.rsp_data[32 * i:32 * i + 32]
            element = spread((raw >> (got.addr[:2] << 3))[:32], got.size)
            value = Mux(got.oob, 0, Mux(got.unit, raw, element))[:32]
            m.d.comb += [lane.w_entry.eq(Cat(got.at[low:], half)), lane.w_data.eq(value.replicate(width // 4)),
                         lane.w_bytes.eq(place_)]

    def _emit(self, m, halves, piece, lanes):
        """Read an entry of one lane, or an element of each of several; register; rotate to the low end."""
        config, width = self.config, self.config.axi_bytes
        low = (width - 1).bit_length()
        p, half, free = piece.payload, Signal(), Signal()
        amount, assign = turn(p, config)
        kept, turned, valid, count = Signal(8 * width), Signal.like(amount, name="turned"), Signal(), Signal.like(p.count)
        m.d.comb += [assign, free.eq(~valid | self.out.ready), piece.ready.eq(free), self.out.valid.eq(valid),
                     self.idle.eq(halves.idle & ~valid),
                     halves.drained.eq(piece.valid & free & p.end), self.out.payload.count.eq(count),
                     self.out.payload.bytes.eq(rotate(kept, turned, left=False))]
        with m.If(piece.valid & free & p.end):
            m.d.sync += half.eq(~half)
        elements = []
        for lane in lanes:
            m.d.comb += lane.r_entry.eq(Cat(p.at[low:], half))
            raw = lane.r_data.word_select(p.at[2:low], 32) if low > 2 else lane.r_data
            elements.append((raw >> (p.at[:2] << 3))[:32])
        along = Signal(8 * width)
        with m.Switch(p.lane):
            for i, lane in enumerate(lanes):
                with m.Case(i):
                    m.d.comb += along.eq(lane.r_data)
        with m.If(free):
            m.d.sync += [valid.eq(piece.valid), count.eq(p.count), turned.eq(amount),
                         kept.eq(Mux(p.inner, self._across(m, p, elements, width), along))]

    def _across(self, m, piece, elements, width):
        """The elements of consecutive lanes, each in its lane's slot of the bus."""
        by_size = []
        for size in range(3):
            slots, parts = width >> size, []
            for s in range(slots):
                chosen = Signal(8 << size, name=f"slot{size}_{s}")
                lanes = range(s, len(elements), slots)
                with m.Switch((piece.lane + slots - 1 - s)[(slots - 1).bit_length():8]):
                    for group, lane in enumerate(lanes):
                        with m.Case(group):
                            m.d.comb += chosen.eq(elements[lane])
                parts.append(chosen)
            by_size.append(Cat(*parts))
        return Mux(piece.size == 2, by_size[2], Mux(piece.size == 1, by_size[1], by_size[0]))
