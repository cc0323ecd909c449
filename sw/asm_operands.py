"""Reads the operands of one instruction: `key=value`, flags, `after`, `wait` and `tag`.

What a value looks like follows from the operand's kind (see `sw.asm_syntax`); nothing here knows an instruction.
"""

from dataclasses import dataclass, field

from isa.dtypes import DType
from isa.fields import HEAD
from isa.table import QUEUES, Mode
from sw.asm_lex import number, suggestion
from sw.asm_syntax import SPACES, TYPES, operands, value_names
from sw.asm_tensors import Ref, reference

HEAD_FIELDS = [n for n in HEAD if n.startswith("wait")]


@dataclass
class Scalar:
    """`mode` and the field's 32 bits; `number` is an immediate whose bits depend on the instruction's class."""

    token: object
    mode: Mode
    bits: int = 0
    number: object = None


@dataclass
class Items:
    """Everything on an instruction's line after the mnemonic."""

    values: dict = field(default_factory=dict)   # operand key or field name -> (token, value)
    flags: dict = field(default_factory=dict)    # name -> token
    after: list = field(default_factory=list)    # label tokens
    waits: dict = field(default_factory=dict)    # queue -> (token, count)
    tag: object = None


class OperandReader:
    """`symbols` has `constants` (an Expressions object in `expressions`) and `tensors` by name."""

    def __init__(self, symbols):
        self.symbols = symbols
        self.expressions = symbols.expressions

    def items(self, line, instruction):
        """Items up to the end of the line."""
        specs, items = operands(instruction.name), Items()
        flags = [f for f in instruction.flags if f]
        raw = [f for f in (*instruction.placed, *HEAD_FIELDS) if f not in specs]
        words = [*specs, *flags, "after", "wait", "tag"]
        while not line.done:
            token = line.name("an operand", None)
            if line.is_("="):
                line.next()
                self._assign(line, items, token, specs, raw, words, instruction)
            elif token.text == "after":
                items.after += self._labels(line)
            elif token.text in flags:
                self._once(line, items.flags, token.text, token, token)
            elif token.text in specs:
                raise line.expected(f"'=' after {token.text!r}")
            else:
                raise line.error(f"{instruction.name} has no flag {token.text!r}{suggestion(token.text, words)} "
                                 f"(it has: {', '.join(flags) or 'none'})", token)
        return items

    def _assign(self, line, items, token, specs, raw, words, instruction):
        key = token.text
        if key == "tag":
            if items.tag is not None:
                raise line.error("'tag' is given twice", token)
            items.tag = token, self.expressions.integer(line, "a tag")
        elif key == "wait":
            self._waits(line, items)
        elif key in specs:
            self._once(line, items.values, key, token, (token, self._value(line, specs[key])))
        elif key in raw:
            value = self.expressions.integer(line, f"an integer for {key}")
            self._once(line, items.values, key, token, (token, value))
        else:
            known = ", ".join(specs) or "none"
            raise line.error(f"{instruction.name} has no operand {key!r}{suggestion(key, words)} (it has: {known})",
                             token)

    @staticmethod
    def _once(line, where, key, token, value):
        if key in where:
            raise line.error(f"{key!r} is given twice", token)
        where[key] = value

    @staticmethod
    def _labels(line):
        out = [line.name("a label")]
        while line.accept(","):
            out.append(line.name("a label"))
        return out

    def _waits(self, line, items):
        line.expect("(")

        def one():
            queue = line.name("a queue", QUEUES)
            line.expect(":")
            self._once(line, items.waits, queue.text, queue, (queue, self.expressions.integer(line, "a count")))
        line.sequence(one, ")")

    def _value(self, line, spec):
        if spec.kind == "range":
            first = self.expressions.integer(line, "a first partition")
            return first, self.expressions.integer(line, "an end") if line.accept(":") else first + 1
        if spec.kind == "shape":
            return self.tuple_(line, "a size", 3)
        if spec.kind == "scalar" or (spec.mode and self._is_scalar(line)):
            return self._scalar(line)
        if spec.kind in ("tensor", "dram"):
            return self._tensor(line, spec)
        return self._plain(line, spec.key)

    def tuple_(self, line, what, most):
        """(a, b, ...) or a single number."""
        start = line.peek()
        if not line.accept("("):
            return (self.expressions.integer(line, what),)
        out = tuple(line.sequence(lambda: self.expressions.integer(line, what), ")"))
        if len(out) > most:
            raise line.error(f"expected at most {most} numbers, found {len(out)}", start)
        return out

    def _plain(self, line, key):
        token, names = line.peek(), value_names(key)
        if token.kind == "name" and token.text in names:
            return names[line.next().text]
        if token.kind == "name" and key.endswith("_addr") and token.text in self.symbols.tensors:
            return reference(line, self.symbols.tensors, self.expressions, "").addr
        if names and token.kind == "name" and token.text not in self.expressions.constants:
            raise line.expected(f"a value of {key} ({', '.join(names)})", choices=names)
        return self.expressions.integer(line, f"an integer for {key}")

    def _is_scalar(self, line):
        token = line.peek()
        if token.kind == "name":
            return token.text not in SPACES and token.text not in self.symbols.tensors
        ahead = 0
        while line.peek(ahead).kind == "number" or line.is_("-", "+", "*", "(", ")", ahead=ahead):
            ahead += 1
        return not line.is_(":", ahead=ahead)

    def _scalar(self, line):
        token = line.peek()
        if token.kind == "name" and token.text == "none":
            line.next()
            bits = self.expressions.integer(line, "32 bits") if line.accept(":") else 0
            return Scalar(token, Mode.NONE, bits)
        if token.kind == "name" and token.text == "part":
            line.next()
            line.expect(":")
            ref = self._address(line, "sbuf")
            dtype = self._type(line) if line.accept(":") else ref.dtype
            if dtype is None:
                raise line.expected("':' and an element type")
            if not 0 <= ref.addr < 1 << 18:
                raise line.error(f"address {ref.addr:#x}: must be 0 to 0x3ffff", ref.token)
            return Scalar(token, Mode.PARTITION, ref.addr | int(dtype) << 18)
        if token.kind == "name" and token.text in self.symbols.tensors:
            raise line.error(f"expected a number, found the tensor {token.text!r}; did you mean "
                             f"'part:{token.text}' (one value a partition)?", token)
        if token.kind == "number" and token.text[:2] in ("0x", "0X"):
            return Scalar(token, Mode.IMM, number(line))
        return Scalar(token, Mode.IMM, number=self.expressions.value(line))

    def _type(self, line):
        return DType(TYPES[line.name("an element type", TYPES).text])

    def _tensor(self, line, spec):
        token, space = line.peek(), ""
        wanted = "dram" if spec.kind == "dram" else "psum" if spec.psum else "" if spec.space else "sbuf"
        if token.kind == "name" and token.text in SPACES and line.is_(":", ahead=1):
            space = line.next().text
            line.next()
            if wanted and space != wanted:
                raise line.error(f"{spec.key} is in {wanted.upper()}, found {space!r}", token)
        ref = self._address(line, space or wanted)
        while line.accept(":"):
            if line.peek().kind == "name" and line.peek().text not in self.expressions.constants:
                here = line.peek()
                ref.dtype = self._type(line)
                if not spec.type:
                    raise line.error(f"{spec.key} has no type of its own", here)
            else:
                ref.strides = self.tuple_(line, "a stride", len(spec.strides))
                ref.axes = None  # its shape says nothing about such a walk
        if ref.dtype is None and spec.type:
            raise line.error(f"{spec.key} needs an element type: address:type:(strides)", token)
        if ref.space == "dram" != spec.kind:
            raise line.error(f"{spec.key} is on chip; {token.text} is in DRAM", token)
        ref.space = ref.space or space or wanted or "sbuf"
        return ref

    def _address(self, line, wanted):
        token = line.peek()
        if token.kind == "name" and token.text not in self.expressions.constants:
            return reference(line, self.symbols.tensors, self.expressions, wanted)
        return Ref(token, self.expressions.integer(line, "an address"))
