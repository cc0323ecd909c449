"""Directives of an assembly file, and the symbols they define.

    .config tiny                            a preset; or .config name lanes=8 pe=bf16 ...
    .const two 2.0                          a number, or an expression of constants before it
    .tensor A dram bf16 [64, 64] input      role input, output, const or temp; optional @offset
    .tensor xs sbuf bf16 [4, 16] @0x100     first axis: partitions; without @ the next free address
    .init W 1.0 2.0 3.0                     values of a const tensor, row-major; further lines append
    .init W fill 0.5                        one value everywhere; `iota`: 0, 1, 2 ...; `hex 00ff`: bytes
    .source 3 "net.py:12"                   what the tag 3 names
"""

import json
import math
from dataclasses import replace

import numpy as np

from isa.config import PRESETS, Config, ConfigError
from isa.dtypes import DType
from sw.asm_lex import FLOAT_NAMES, TOKEN, Expressions, suggestion
from sw.asm_syntax import SPACES, TYPES
from sw.asm_tensors import Tensor
from sw.program import DRAM_END, ROLES

MEMORIES = ("dram", "sbuf", "psum")
DRAM_ALIGN = 64
TAGS = 1 << 16
RESERVED = {*SPACES, *TYPES, *FLOAT_NAMES, "dram", "part", "none", "hex", "fill", "iota"}


def is_name(text):
    """The text can stand for itself as a tensor's name; otherwise it needs double quotes."""
    match = TOKEN.fullmatch(text)
    return bool(match) and match.lastgroup == "name" and not text.startswith(".") and text not in RESERVED


class Symbols:
    """What a file has defined so far."""

    def __init__(self, config=None):
        self.config, self.forced = config, config is not None
        self.constants, self.tensors, self.bytes = {}, {}, {}
        self.expressions = Expressions(self.constants)
        self.ends = dict.fromkeys(MEMORIES, 0)
        self.places = {}  # tensor -> (line, token) of its definition
        self.sources = {}

    def needs_config(self, line, token):
        if self.config is None:
            raise line.error(f"a `.config` line must come before this (one of: {', '.join(PRESETS)})", token)
        return self.config


class Directives:
    """Carries out one directive on `symbols`."""

    def __init__(self, symbols):
        self.symbols = symbols
        self.known = {".config": self._config, ".const": self._const, ".tensor": self._tensor, ".init": self._init,
                      ".source": self._source}

    def run(self, line):
        token = line.next()
        if token.text not in self.known:
            raise line.error(f"no directive {token.text!r}{suggestion(token.text, self.known)} "
                             f"(there are: {', '.join(self.known)})", token)
        self.known[token.text](line, token)
        if not line.done:
            raise line.expected("the end of the line")

    def _config(self, line, token):
        name = line.name("a configuration")
        if line.done:
            if name.text not in PRESETS:
                raise line.error(f"no configuration {name.text!r}{suggestion(name.text, PRESETS)} "
                                 f"(there are: {', '.join(PRESETS)})", name)
            config = PRESETS[name.text]
        else:
            config = self._custom(line, name)
        old = self.symbols.config
        if old is not None and old.hash != config.hash:
            why = "the one asked for is" if self.symbols.forced else "it was"
            raise line.error(f"configuration {config.name}: {why} {old.name}", name)
        if old is None:
            self.symbols.config = config

    def _custom(self, line, name):
        known = [f for f in Config.__dataclass_fields__ if f != "name"]
        values = {}
        while not line.done:
            key = line.name("a parameter", known).text
            line.expect("=")
            values[key] = line.name("a PE kind").text if key == "pe" else \
                self.symbols.expressions.integer(line, f"an integer for {key}")
        try:
            return Config(name.text, **values)
        except ConfigError as error:
            raise line.error(str(error), name) from None

    def _name(self, line, what, choices=None):
        """(token, name): a name, or any text in double quotes."""
        if line.peek().kind != "string":
            token = line.name(what, choices)
            return token, token.text
        token, text = line.peek(), self._string(line)
        if choices is not None and text not in choices:
            raise line.expected(what, token, choices)
        return token, text

    @staticmethod
    def _string(line):
        token = line.peek()
        try:
            return json.loads(line.next().text)
        except json.JSONDecodeError:
            raise line.error("expected a text in double quotes, escaped as in JSON", token) from None

    def _new_name(self, line):
        name, text = self._name(line, "a name")
        if name.kind == "name" and text in RESERVED:
            raise line.error(f"{text!r} has a meaning of its own; choose another name", name)
        if text in self.symbols.tensors or text in self.symbols.constants:
            raise line.error(f"{text!r} is defined twice", name)
        return name, text

    def _const(self, line, _):
        _, name = self._new_name(line)
        self.symbols.constants[name] = self.symbols.expressions.value(line)

    def _tensor(self, line, token):
        config = self.symbols.needs_config(line, token)
        token, name = self._new_name(line)
        memory = line.name("a memory", MEMORIES).text
        dtype = DType(TYPES[line.name("an element type", TYPES).text])
        line.expect("[")
        where = line.peek()
        shape = tuple(line.sequence(lambda: self.symbols.expressions.integer(line, "a size"), "]"))
        if min(shape) < 1:
            raise line.error(f"size {min(shape)}: must be at least 1", where)
        if memory != "dram":
            self._on_chip_shape(line, where, memory, dtype, shape, config)
        role, address = "", None
        while not line.done:
            if line.accept("@"):
                address = self.symbols.expressions.integer(line, "an address")
            elif memory == "dram" and not role:
                role = line.name("a role", ROLES).text
            else:
                raise line.expected("'@' and an address, or the end of the line")
        if memory == "dram" and not role:
            raise line.expected(f"a role ({', '.join(ROLES)})", choices=ROLES)
        self._place(line, token, Tensor(name, memory, dtype, shape, address, role), config)

    @staticmethod
    def _on_chip_shape(line, where, memory, dtype, shape, config):
        if shape[0] > config.lanes:
            raise line.error(f"{shape[0]} partitions; {config.name} has {config.lanes}", where)
        if len(shape) > 4:
            raise line.error(f"{len(shape)} axes: at most the partitions and three more", where)
        if memory == "psum" and dtype.size_bytes != 4:
            raise line.error("tensors in PSUM have a type of four bytes: fp32 or int32", where)

    def _place(self, line, token, tensor, config):
        """Give the tensor an address if it has none, and a place among the symbols."""
        memory, size = tensor.memory, tensor.dtype.size_bytes
        count = math.prod(tensor.shape[1:] if tensor.on_chip else tensor.shape)
        limit = {"dram": DRAM_END, "sbuf": config.sbuf_bytes, "psum": config.psum_bytes}[memory]
        align = {"dram": DRAM_ALIGN, "sbuf": 4 * config.sbuf_banks, "psum": 4}[memory]
        ends, address = self.symbols.ends, tensor.address
        if address is None:
            address = -(-ends[memory] // align) * align
        end = address + count * size
        if address < 0 or end > limit:
            raise line.error(f"{tensor.name} takes bytes {address:#x} to {end - 1:#x} of {memory.upper()}; there are "
                             f"{limit:#x}", token)
        if tensor.on_chip and address % size:
            raise line.error(f"address {address:#x}: must be a multiple of {size}", token)
        ends[memory] = max(ends[memory], end)
        self.symbols.tensors[tensor.name] = replace(tensor, address=address)
        self.symbols.places[tensor.name] = line, token
        if tensor.role == "const":
            self.symbols.bytes[tensor.name] = b""

    def _init(self, line, _):
        token, name = self._name(line, "a const tensor", list(self.symbols.tensors))
        tensor = self.symbols.tensors[name]
        if tensor.role != "const":
            raise line.error(f"{name} is not a const tensor in DRAM", token)
        total = math.prod(tensor.shape)
        word = line.peek()
        if word.kind == "name" and word.text == "hex":
            raw = self._hex(line)
        elif word.kind == "name" and word.text == "iota":
            line.next()
            raw = self._array(line, word, np.arange(total), tensor.dtype)
        elif word.kind == "name" and word.text == "fill":
            line.next()
            raw = self._array(line, word, [self.symbols.expressions.value(line)] * total, tensor.dtype)
        else:
            values = []
            while not line.done:
                values.append(self._number(line))
            raw = self._array(line, word, values, tensor.dtype)
        self.symbols.bytes[name] += raw
        if len(self.symbols.bytes[name]) > total * tensor.dtype.size_bytes:
            raise line.error(f"{len(self.symbols.bytes[name])} bytes of values for {name}, which has "
                             f"{total * tensor.dtype.size_bytes}", token)

    def _number(self, line):
        """One value: a sign and an atom, so that `1 -2` is two."""
        line.accept(",")
        sign = -1 if line.accept("-") else 1
        return sign * self.symbols.expressions.atom(line)

    @staticmethod
    def _hex(line):
        line.next()
        start, text = line.peek(), ""
        while not line.done:
            text += line.next().text
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise line.error("expected an even number of hexadecimal digits", start) from None

    @staticmethod
    def _array(line, token, values, dtype):
        array = np.asarray(values, np.float64)
        if dtype.is_int:
            info = np.iinfo(dtype.numpy)
            bad = [v for v in array if not (info.min <= v <= info.max and v == int(v))]
            if bad:
                raise line.error(f"{bad[0]:g} is not a value of {dtype.label}", token)
        with np.errstate(over="ignore"):
            return array.astype(np.float32 if dtype.is_float else np.int64).astype(dtype.numpy).tobytes()

    def _source(self, line, _):
        where = line.peek()
        tag = self.symbols.expressions.integer(line, "a tag")
        if not 0 <= tag < TAGS:
            raise line.error(f"tag {tag}: must be 0 to {TAGS - 1}", where)
        text = line.peek()
        if text.kind != "string":
            raise line.expected("a text in double quotes")
        self.symbols.sources[tag] = self._string(line)
