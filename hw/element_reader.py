"""Element reader: a strided walk over SBUF or PSUM as a stream of element rows."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.interfaces import WALK, RowRead
from hw.walker import Walker

WORDS = 8         # words requested or buffered
DESCRIPTORS = 16  # elements walked ahead


def row_layout(lanes):
    """An element row: raw bits, low-aligned in 32 bits a lane; `last` of its walk."""
    return data.StructLayout({"row": 32 * lanes, "last": 1})


def extract(word, offset, size, lanes):
    """Raw elements of log2 `size` at byte `offset` of every lane's word."""
    out = []
    for p in range(lanes):
        lane = word[32 * p:32 * p + 32]
        half = Mux(offset[1], lane[16:], lane[:16])
        byte = Mux(offset[0], half[8:], half[:8])
        low = Mux(size == 0, byte, Mux(size == 1, half[:8], lane[:8]))
        out += [low, Mux(size == 0, 0, Mux(size == 1, half[8:], lane[8:16]))[:8], Mux(size == 2, lane[16:], 0)[:16]]
    return Cat(*out)


class ElementReader(wiring.Component):
    """One element row a cycle, without a bubble between walks, while every request is granted.

    A word is fetched once and held for all consecutive elements in it, never across walks. Elements outside the
    memory read as zero and raise `trap_valid` with their instruction and address.
    """

    def __init__(self, config, limit, addr_bits=16):
        self.lanes, self.limit = config.lanes, limit
        super().__init__({
            "cmd": In(stream.Signature(WALK)),
            "port": Out(RowRead(config.lanes, addr_bits)),
            "out": Out(stream.Signature(row_layout(config.lanes))),
            "trap_valid": Out(1), "trap_index": Out(32), "trap_addr": Out(22), "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker = walker = Walker(self.limit)
        m.submodules.words = words = fifo.SyncFIFO(width=32 * self.lanes, depth=WORDS)
        m.submodules.descriptors = ahead = fifo.SyncFIFO(width=7, depth=DESCRIPTORS)
        connect(m, flipped(self.cmd), walker.cmd)
        self._request(m, walker.out, words, ahead)
        self._deliver(m, words, ahead)
        m.d.comb += self.idle.eq(~walker.out.valid & ~ahead.r_rdy & ~self.out.valid)
        return m

    def _request(self, m, step, words, ahead):
        e = step.payload
        word, previous = e.addr[2:], Signal(20)
        new, taken, usable = Signal(), Signal(), Signal()
        credits = Signal(range(WORDS + 1), init=WORDS)
        m.d.comb += [
            new.eq(~e.oob & (e.first | (word != previous))),
            usable.eq(step.valid & ahead.w_rdy),
            self.port.valid.eq(usable & new & (credits != 0)), self.port.addr.eq(word),
            self.port.urgent.eq(words.level <= 1),
            step.ready.eq(ahead.w_rdy & (~new | (self.port.ready & (credits != 0)))),
            taken.eq(step.valid & step.ready),
            ahead.w_en.eq(taken), ahead.w_data.eq(Cat(e.addr[:2], e.size, new, e.last, e.oob)),
            words.w_en.eq(self.port.rsp_valid), words.w_data.eq(self.port.rsp_data),
            self.trap_valid.eq(taken & e.oob), self.trap_index.eq(e.index), self.trap_addr.eq(e.addr),
        ]
        with m.If(taken):
            # An element outside must not make its successor share a word with what came before.
            m.d.sync += previous.eq(Mux(e.oob, -1, word))
        spent, back = Signal(), Signal()
        m.d.comb += [spent.eq(self.port.valid & self.port.ready), back.eq(words.r_en & words.r_rdy)]
        m.d.sync += credits.eq(credits - spent + back)

    def _deliver(self, m, words, ahead):
        offset, size = ahead.r_data[:2], ahead.r_data[2:4]
        new, last, oob = ahead.r_data[4], ahead.r_data[5], ahead.r_data[6]
        held, go = Signal(32 * self.lanes, reset_less=True), Signal()
        word = Signal(32 * self.lanes)  # named: an expression would be written out once a use
        m.d.comb += word.eq(Mux(new, words.r_data, held))
        m.d.comb += [
            go.eq(ahead.r_rdy & (~new | words.r_rdy) & (~self.out.valid | self.out.ready)),
            ahead.r_en.eq(go), words.r_en.eq(go & new),
        ]
        with m.If(self.out.ready):
            m.d.sync += self.out.valid.eq(0)
        with m.If(go):
            m.d.sync += [self.out.valid.eq(1), self.out.payload.last.eq(last),
                         self.out.payload.row.eq(Mux(oob, 0, extract(word, offset, size, self.lanes)))]
            with m.If(new):
                m.d.sync += held.eq(words.r_data)
