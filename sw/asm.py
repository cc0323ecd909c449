"""The assembler: text to a `sw.program.Program`.

    .config tiny
    .tensor A  dram fp32 [4, 16] input
    .tensor C  dram fp32 [4, 16] output
    .tensor xs sbuf fp32 [4, 16]
    load:  dma0 ld  x=xs d=A
    twice: vec  alu x=xs y=xs op0=mul a=2.0       after load
           dma0 st  x=xs d=C                      after twice

One instruction a line: `[label:] queue mnemonic operands flags [after labels]`, in any order after the mnemonic;
`#` starts a comment. Operands follow from the instruction table (`sw.asm_syntax`), directives are in
`sw.asm_directives`, references to tensors in `sw.asm_tensors`. `after` names earlier instructions and becomes wait
counts; `wait=(pe:3, ext:1)` states counts. `tag=` overrides the source map's index. Any field may be written by its
own name. `queue word 0x...` is an instruction as it stands.

What is accepted cannot trap, except by data (rows of gather and scatter), the bus, or a count that the host never
raises; it has no deadlock and no wait that 16 bits could misread: where a queue is long, nops are inserted.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from isa.encode import decode, encode
from isa.fields import INSTRUCTION_BITS
from isa.legality import check
from isa.table import BY_NAME, QUEUES, for_queue
from sw import asm_check, asm_order
from sw.asm_directives import TAGS, Directives, Symbols
from sw.asm_fields import FieldBuilder
from sw.asm_lex import Line, suggestion
from sw.asm_operands import Items, OperandReader
from sw.asm_syntax import operands
from sw.errors import AsmError
from sw.program import DramTensor, Program

WORD = "word"


@dataclass
class Parsed:
    """One instruction of the text; `word` is set instead of `fields` where the text gives bits."""

    line: object
    token: object
    queue: str
    name: str
    fields: dict
    items: Items
    tokens: dict
    word: object = None
    tag: int = 0

    def token_of(self, field):
        """Where the operand that sets a field stands; the mnemonic where none does."""
        for key, spec in (operands(self.name) if self.name in BY_NAME else {}).items():
            if field == key or field in spec.all_fields:
                return self.tokens.get(key, self.token)
        return self.tokens.get(field, self.token)


class Assembler:
    """Two passes: `read` parses, `program` places, encodes and proves. `strict=False` leaves out the proofs."""

    def __init__(self, file, config=None, strict=True):
        self.file, self.strict = file, strict
        self.symbols = Symbols(config)
        self.directives = Directives(self.symbols)
        self.reader = OperandReader(self.symbols)
        self.parsed = []
        self.labels = {}    # name -> position in `parsed`
        self.pending = []   # labels before their instruction: (line, token)

    def read(self, text):
        """First pass over all lines."""
        for number, line_text in enumerate(text.split("\n"), 1):
            line = Line(self.file, number, line_text)
            if line.done:
                continue
            if line.peek().text.startswith("."):
                self.directives.run(line)
                continue
            while line.peek().kind == "name" and line.is_(":", ahead=1):
                self._label(line)
            if not line.done:
                self.parsed.append(self._instruction(line))
                self.pending.clear()
        if self.pending:
            line, token = self.pending[0]
            raise line.error(f"the label {token.text!r} names no instruction", token)

    def _label(self, line):
        token = line.next()
        line.next()
        if token.text in self.labels:
            first = self.parsed[self.labels[token.text]] if self.labels[token.text] < len(self.parsed) else None
            place = f" (first at {first.line.place})" if first else ""
            raise line.error(f"the label {token.text!r} is defined twice{place}", token)
        self.labels[token.text] = len(self.parsed)
        self.pending.append((line, token))

    def _instruction(self, line):
        token = line.peek()
        config = self.symbols.needs_config(line, token)
        if token.kind != "name" or token.text not in QUEUES or token.text == "ext":
            raise line.expected(f"a queue ({', '.join(config.queues)}), a label or a directive",
                                choices=[*config.queues, *self.directives.known])
        if token.text not in config.queues:
            raise line.error(f"configuration {config.name} has no queue {token.text!r} (it has: "
                             f"{', '.join(config.queues)})", token)
        queue = line.next().text
        token, known = line.peek(), _mnemonics(queue)
        if token.text == WORD:
            return self._word(line, queue)
        if token.kind != "name" or token.text not in known:
            raise line.error(self._no_instruction(token, queue, known), token)
        instruction = BY_NAME[line.next().text]
        items = self.reader.items(line, instruction)
        fields = FieldBuilder(line, instruction, items, token).build()
        fields |= dict.fromkeys(items.flags, True)
        tokens = {k: t for k, (t, _) in items.values.items()} | items.flags
        return Parsed(line, token, queue, instruction.name, fields, items, tokens, tag=self._tag(line, items))

    @staticmethod
    def _no_instruction(token, queue, known):
        if token.kind != "name":
            return f"expected an instruction, found {token.shown}"
        if token.text in BY_NAME:
            other = BY_NAME[token.text]
            if other.reserved:
                return f"{token.text!r} is reserved: no hardware yet"
            return f"{token.text!r} runs on {other.queue} queues, not on {queue}"
        return (f"no instruction {token.text!r} on {queue}{suggestion(token.text, known)} "
                f"(there are: {', '.join(known)}, {WORD})")

    def _word(self, line, queue):
        token = line.next()
        value = self.symbols.expressions.integer(line, "512 bits as a hexadecimal number")
        if not 0 <= value < 1 << INSTRUCTION_BITS:
            raise line.error(f"expected {INSTRUCTION_BITS} bits", token)
        if not line.done:
            raise line.expected("the end of the line")
        return Parsed(line, token, queue, WORD, {}, Items(), {}, value, value >> 16 & (TAGS - 1))

    def _tag(self, line, items):
        if items.tag is None:
            return min(len(self.parsed), TAGS - 1)
        token, tag = items.tag
        if not 0 <= tag < TAGS:
            raise line.error(f"tag = {tag}: must be 0 to {TAGS - 1}", token)
        return tag

    def program(self):
        """Second pass: the finished Program."""
        pacer = asm_order.Pacer(self._links())
        queues, owners, places = {}, {}, []
        for position, one in enumerate(self.parsed):
            nops, waits, index = pacer.place(one.queue, self._waits(one, position, places))
            for queue, nop_waits in nops:
                queues.setdefault(queue, []).append(encode("nop", tag=one.tag, **_wait_fields(nop_waits)))
                owners.setdefault(queue, []).append(one)
            places.append((one.queue, index))
            queues.setdefault(one.queue, []).append(self._encode(one, waits))
            owners.setdefault(one.queue, []).append(one)
        if self.strict and (found := asm_order.problem(queues)):
            queue, index, message = found
            one = owners[queue][index]
            raise one.line.error(message, one.token)
        if self.symbols.config is None:
            raise AsmError(f"{self.file}:1:1: the file has no `.config` line")
        tensors = {n: DramTensor(n, t.dtype, t.shape, t.address, t.role) for n, t in self.symbols.tensors.items()
                   if t.memory == "dram"}
        return Program(self.symbols.config, {q: queues[q] for q in QUEUES if q in queues}, tensors,
                       self._constants(tensors), self._source())

    def _links(self):
        """Pairs of queues that wait on each other; none where no queue outgrows the counts, or where some wait is
        given as a number (which nops would invalidate)."""
        longest = max((sum(p.queue == q for p in self.parsed) for q in QUEUES), default=0)
        stated = any(p.word is not None or set(p.items.waits) - {"ext"} or "wait_mask" in p.items.values
                     for p in self.parsed)
        if longest < asm_order.WINDOW - 1 or stated:
            return set()
        queues = {name: self.parsed[at].queue for name, at in self.labels.items()}
        return {frozenset((p.queue, queues[t.text])) for p in self.parsed for t in p.items.after if t.text in queues}

    def _waits(self, one, position, places):
        """{queue: count}; the latest of all that is asked for."""
        waits = {}
        for token in one.items.after:
            if token.text not in self.labels:
                raise one.line.error(f"no label {token.text!r}{suggestion(token.text, self.labels)}", token)
            target = self.labels[token.text]
            if target >= position:
                raise one.line.error(f"{token.text!r} names "
                                     f"{'this instruction itself' if target == position else 'a later instruction'}; "
                                     "waits name earlier ones", token)
            queue, index = places[target]
            waits[queue] = max(waits.get(queue, 0), index + 1)
        for queue, (token, count) in one.items.waits.items():
            if not 0 <= count < 1 << 16:
                raise one.line.error(f"count {count}: must be 0 to 65535", token)
            waits[queue] = max(waits.get(queue, 0), count)
        return waits

    def _encode(self, one, waits):
        word = one.word
        if word is None:
            word = encode(one.name, **{"tag": one.tag, **_wait_fields(waits), **one.fields})
        found = check(word, one.queue, self.symbols.config) if self.strict or one.word is None else None
        if found:
            raise one.line.error(found[1], self._blame(one, found[1]))
        if self.strict:
            instruction, values = decode(word)
            found = asm_check.problem(instruction, values, self.symbols.config, self.symbols.ends["dram"])
            if found:
                raise one.line.error(found[1], one.token_of(found[0]))
        return word

    @staticmethod
    def _blame(one, message):
        """The token of the first field that a message names."""
        for text in message.replace(":", " ").replace(",", " ").split()[1:]:
            if one.token_of(text) is not one.token:
                return one.token_of(text)
        return one.token

    def _constants(self, tensors):
        out = {}
        for name, raw in self.symbols.bytes.items():
            t = tensors[name]
            if len(raw) != t.bytes:
                line, token = self.symbols.places[name]
                raise line.error(f"the const tensor {name} has {t.bytes} bytes; `.init` lines give {len(raw)}", token)
            out[name] = np.frombuffer(raw, t.dtype.numpy).reshape(t.shape)
        return out

    def _source(self):
        sources = dict(self.symbols.sources)
        for one in self.parsed:
            sources.setdefault(one.tag, one.line.place)
        return [sources.get(tag, "") for tag in range(max(sources, default=-1) + 1)]


@lru_cache(maxsize=None)
def _mnemonics(queue):
    return tuple(i.name for i in for_queue(queue))


def _wait_fields(waits):
    fields = {"wait_mask": sum(1 << QUEUES.index(q) for q in waits)}
    return fields | {f"wait{QUEUES.index(q)}": count & 0xFFFF for q, count in waits.items()}


def assemble(text, file="<text>", config=None, strict=True):
    """The Program of an assembly text; AsmError for the first mistake. `config` stands in for `.config`."""
    assembler = Assembler(file, config, strict)
    assembler.read(text)
    return assembler.program()


def assemble_file(path, config=None, strict=True):
    """The same for a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AsmError(f"{path}: cannot be read: {error}") from error
    return assemble(text, str(path), config, strict)
