"""The function of an activation lane: built in, or a piecewise quadratic from a table. The law: `isa.activation`."""

from types import SimpleNamespace as Values

from amaranth import C, Cat, Const, Module, Mux
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.fp import QUIET_NAN, FpAdd
from hw.fp_mul import FpMul
from hw.leading import leading_zeros, normalise
from hw.pipeline import Pipeline
from hw.stall_delay import stall_delayed
from isa.activation import LN2, LOG2E, SEGMENTS
from isa.ops import Func, TableMode

SLOTS = 4
ONE = 0x3F800000
CONTROL = data.StructLayout({"table": 1, "func": 3, "slot": 2, "mode": 3, "zero": 32, "plus": 32, "minus": 32})
"""What is evaluated: `table` and its slot, mode, f(0), f(+inf), f(-inf); or the built-in `func`."""


class ActFunction(wiring.Component):
    """o = f(v), `latency` (28) enabled cycles later, one a cycle.

    v is fp32, flushed, NaN canonical. `control` belongs to the v of the same cycle. o is fp32, but its NaN may be any
    and its zeros subnormal (where a table's header is). A table is written a coefficient at a time (`table_en`, bit
    0 for c2, 1 for c1, 2 for c0; address slot * 128 + segment) while no element is inside.
    """

    latency = 2 + FpMul.latency + 4 + 2 * (FpMul.latency + FpAdd().latency) + FpAdd().latency + 1

    def __init__(self):
        super().__init__({
            "en": In(1, init=1), "v": In(32), "control": In(CONTROL), "o": Out(32),
            "table_en": In(3), "table_addr": In(range(SLOTS * SEGMENTS)), "table_data": In(32)})

    def elaborate(self, platform):
        m = Module()
        self.pipe = pipe = Pipeline(m, self.en)
        m.submodules.pre_mul = pre = FpMul()
        m.d.comb += pre.en.eq(self.en)
        x = pipe.cut(self._classify())
        factor = pipe.name(self._count_as_float(x), "count_as_float")
        log = pipe.name(x.mode == TableMode.LOG, "is_log")
        operands = Values(a=Mux(log, factor, x.v), b=Mux(x.square, x.v, Mux(log, Const(int(LN2), 32),
                                                                               Const(int(LOG2E), 32))))
        operands = pipe.cut(operands)
        m.d.comb += [pre.a.eq(operands.a), pre.b.eq(operands.b)]
        for name in ("v", "value", "special", "mode", "slot", "square"):
            setattr(x, name, pipe.delay(getattr(x, name), f"before_{name}", 1 + pre.latency))
        x = pipe.cut(self._align(x, pre.o))
        x = pipe.cut(self._reduce(x))
        p = self._polynomial(m, x)
        beside = stall_delayed(m, self.en, "beside", Cat(x.value, x.count, x.special, x.flip, x.log), 16)
        value, count, special, flip, log = beside[:32], beside[32:42].as_signed(), beside[42], beside[43], beside[44]
        scaled = Mux(special, value, self._scale(p, count, flip))
        m.submodules.log_add = total = FpAdd()
        m.d.comb += [total.en.eq(self.en), total.a.eq(value), total.b.eq(p)]
        late = pipe.delay(Cat(scaled, log & ~special), "scaled", total.latency)
        m.d.comb += self.o.eq(pipe.register(Mux(late[32], total.o, late[:32]), "result"))
        return m

    def _classify(self):
        """Inputs whose result needs no polynomial; and log's count k, as sign and magnitude."""
        v, c = self.v, self.control
        exponent, fraction, negative = v[23:31], v[:23], v[31]
        nan, infinite = exponent.all() & fraction.any(), exponent.all() & ~fraction.any()
        zero = ~exponent.any()
        domain = negative & c.mode.matches(TableMode.SQRT, TableMode.RSQRT, TableMode.LOG)
        flip = negative & (c.mode == TableMode.RECIP)
        header = Mux(zero, Cat(c.zero[:31], c.zero[31] ^ flip), Mux(negative, c.minus, c.plus))
        relu = Mux(negative, 0, v)  # the canonical NaN is not negative
        sign = Mux(nan, v, Mux(zero, 0, Cat(Const(ONE, 31), negative)))
        simple = Mux(c.func == Func.RELU, relu,
                     Mux(c.func == Func.ABS, v[:31], Mux(c.func == Func.SIGN, sign, v)))
        k = self.pipe.name((exponent + fraction[22] - 127)[:9], "k")
        return Values(
            v=v, special=~c.table | nan | infinite | zero | domain, slot=c.slot,
            value=Mux(c.table, Mux(zero | infinite, header, QUIET_NAN), simple)[:32],
            mode=Mux(c.table, c.mode, TableMode.DIRECT), square=~c.table & (c.func == Func.SQUARE),
            k=(Mux(k[8], -k, k))[:8], k_negative=k[8])

    def _count_as_float(self, x):
        zeros, none = leading_zeros(self.pipe, x.k)
        shifted = normalise(self.pipe, x.k, zeros)
        return Cat(C(0, 16), shifted[:7], (134 - zeros)[:8], x.k_negative) & ~none.replicate(32)

    def _align(self, x, product):
        """exp: |t| in units of 2^-23; log: |r| in units of 2^-24. `product` is t, log's k * ln2, or the square."""
        v = x.v
        exponent = product[23:31]
        distance = self.pipe.name((134 - exponent)[:9], "distance")
        word = Cat(C(0, 7), product[:23], C(1, 1))
        for bit in reversed(range(5)):
            word = self.pipe.name(Mux(distance[bit], word >> (1 << bit), word), f"right_{1 << bit}")
        fixed = word & ~distance[5:].any().replicate(31)
        upper = Mux(v[22], -v[:23], v[:22] << 1)[:23]
        log = x.mode == TableMode.LOG
        return Values(
            v=v, mode=x.mode, slot=x.slot, special=x.special, fixed=Mux(log, upper, fixed)[:31], far=distance[8],
            value=Mux(x.square | (log & ~x.special), product, x.value))

    def _reduce(self, x):
        """r, the segment, the count for the exponent; the value where there is no polynomial, or log's k * ln2."""
        v, mode, pipe = x.v, x.mode, self.pipe
        exponent, fraction, negative = v[23:31], v[:23], v[31]
        is_mode = {t: mode == t.value for t in TableMode}
        exp, log, recip = (is_mode[t] for t in (TableMode.EXP, TableMode.LOG, TableMode.RECIP))
        roots = is_mode[TableMode.SQRT] | is_mode[TableMode.RSQRT]
        t = pipe.name(((Cat(x.fixed, C(0, 1)) ^ negative.replicate(32)) + negative)[:32], "fixed_point")
        zeros, none = leading_zeros(pipe, x.fixed[:23])
        near = normalise(pipe, x.fixed[:23], zeros)
        log_r = Cat(C(0, 1), near[:22], (125 - zeros)[:8], fraction[22]) & ~none.replicate(32)
        odd = ~exponent[0]
        one = Mux(odd & roots, C(128, 8), C(127, 8))
        reduced = Cat(Mux(exp, t[:23], fraction), one, C(0, 1))
        r = Mux(log, log_r, Mux(exp | recip | roots, reduced, v))
        top = Mux(exp, t[16:23], Mux(roots, Cat(fraction[17:], odd), fraction[16:]))
        index = Mux(exp | recip | roots | log, top, self._direct(exponent, fraction, negative))
        e = pipe.name((exponent - 127)[:9].as_signed(), "e")
        half = pipe.name(e >> 1, "half_e")
        count = Mux(exp, t[23:].as_signed(), Mux(recip, -e, Mux(is_mode[TableMode.SQRT], half, -half)))
        count = Mux(exp | recip | roots, count, 0)
        far = exp & x.far & ~x.special
        overflow = Mux(negative, 0, 0x7F800000)
        return Values(
            r=r[:32], at=Cat(index[:7], x.slot), count=count[:10], flip=recip & negative, log=log,
            special=x.special | far, value=Mux(far, overflow, x.value)[:32])

    def _direct(self, exponent, fraction, negative):
        """Sign, group, sub: eight linear segments below 0.5, then octaves, beyond 32 the asymptote."""
        small = exponent < 126
        inner = Mux(exponent == 125, Cat(fraction[21:], C(1, 1)),
                    Mux(exponent == 124, Cat(fraction[22], C(1, 1)), exponent == 123))
        group = Mux(small, 0, Mux(exponent >= 132, 7, (exponent + 3)[:3]))
        return Cat(Mux(small, inner, fraction[20:])[:3], group[:3], negative)

    def _polynomial(self, m, x):
        """add(mul(add(mul(c2, r), c1), r), c0), 16 cycles after the registered `x`."""
        pipe = self.pipe
        units = Values(mul1=FpMul(), add1=FpAdd(), mul2=FpMul(), add2=FpAdd())
        for name, unit in vars(units).items():
            m.submodules[name] = unit
            m.d.comb += unit.en.eq(self.en)
        to_c1 = units.mul1.latency
        to_c0 = to_c1 + units.add1.latency + units.mul2.latency
        address = [x.at, stall_delayed(m, self.en, "segment_c1", x.at, to_c1),
                   stall_delayed(m, self.en, "segment_c0", x.at, to_c0)]
        coefficient = []
        for i, name in enumerate(("c2", "c1", "c0")):
            m.submodules[name] = ram = memory.Memory(shape=32, depth=SLOTS * SEGMENTS, init=[])
            write, read = ram.write_port(), ram.read_port()
            m.d.comb += [write.addr.eq(self.table_addr), write.data.eq(self.table_data), write.en.eq(self.table_en[i]),
                         read.addr.eq(address[i]), read.en.eq(self.en)]
            coefficient.append(pipe.register(read.data, name))  # a block RAM alone takes half a cycle
        r = pipe.delay(x.r, "r", 2)
        again = stall_delayed(m, self.en, "r_again", r, to_c1 + units.add1.latency)
        m.d.comb += [
            units.mul1.a.eq(coefficient[0]), units.mul1.b.eq(r), units.add1.a.eq(units.mul1.o),
            units.add1.b.eq(coefficient[1]), units.mul2.a.eq(units.add1.o), units.mul2.b.eq(again),
            units.add2.a.eq(units.mul2.o), units.add2.b.eq(coefficient[2])]
        return units.add2.o

    def _scale(self, p, count, flip):
        exponent = p[23:31]
        moved = self.pipe.name((Cat(exponent, C(0, 1)).as_signed() + count)[:11].as_signed(), "moved")
        kept = ~exponent.any() | exponent.all()
        under, over = moved <= 0, moved >= 255
        magnitude = Mux(kept, p[:31], Mux(under, 0, Mux(over, 0x7F800000, Cat(p[:23], moved[:8]))))
        return Cat(magnitude[:31], p[31] ^ flip)
