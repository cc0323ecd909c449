"""Assembly text as tokens with positions, expressions over constants, and errors that name their place."""

import difflib
import re
from dataclasses import dataclass

from isa.fields import INSTRUCTION_BITS
from sw.errors import AsmError

TOKEN = re.compile(r"""
    (?P<space>[ \t\r]+)
  | (?P<comment>\#.*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>0[xX][0-9a-fA-F]+ | \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \d+)
  | (?P<name>\.?[A-Za-z_][A-Za-z0-9_.]*)
  | (?P<punct>[:=()\[\],@+*\-])
""", re.VERBOSE)
SHORT = 3
SHOWN = 60        # columns of a long line on each side of a mistake
MAX_DIGITS = 155  # as many decimal digits as 512 bits have
MAX_DEPTH = 50    # parentheses and signs inside each other


@dataclass(frozen=True)
class Token:
    """`kind` is string, number, name, punct or end; `column` counts from 1."""

    kind: str
    text: str
    column: int

    @property
    def shown(self):
        return "the end of the line" if self.kind == "end" else repr(self.text[:SHOWN])


def suggestion(word, choices):
    """'; did you mean ...?' where some choice is close, else ''."""
    cutoff = 0.5 if len(str(word)) <= SHORT else 0.6  # one letter of two wrong is still close
    close = difflib.get_close_matches(str(word), [str(c) for c in choices], n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


class Line:
    """The tokens of one line, read from left to right."""

    def __init__(self, file, number, text):
        self.file, self.number, self.text = file, number, text.rstrip("\n")
        self.tokens, self.at = [], 0
        at = 0
        while at < len(self.text):
            match = TOKEN.match(self.text, at)
            if not match:
                raise self.error(f"{self.text[at]!r} does not belong in assembly", at + 1)
            if match.lastgroup not in ("space", "comment"):
                self.tokens.append(Token(match.lastgroup, match.group(), at + 1))
            at = match.end()
        self.tokens.append(Token("end", "", len(self.text.rstrip()) + 1))

    @property
    def place(self):
        return f"{self.file}:{self.number}"

    def error(self, message, where=None):
        """An AsmError at a token, a column, or the current token, with the line and a mark below it."""
        where = self.peek() if where is None else where
        column, width = (where, 1) if isinstance(where, int) else (where.column, max(1, len(where.text)))
        first = max(0, column - 1 - SHOWN) if len(self.text) > 2 * SHOWN else 0
        shown = "".join(c if c.isprintable() else " " for c in self.text[first:first + 2 * SHOWN])
        return AsmError(f"{self.place}:{column}: {message}\n    {shown}\n    {' ' * (column - 1 - first)}"
                        f"{'^' * min(width, SHOWN)}")

    def expected(self, what, where=None, choices=()):
        """An AsmError: `what` was expected, the current token came."""
        where = self.peek() if where is None else where
        return self.error(f"expected {what}, found {where.shown}{suggestion(where.text, choices)}", where)

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def next(self):
        token = self.peek()
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    @property
    def done(self):
        return self.peek().kind == "end"

    def is_(self, *texts, ahead=0):
        """The token is one of these punctuation marks."""
        token = self.peek(ahead)
        return token.kind == "punct" and token.text in texts

    def accept(self, text):
        """Take the punctuation mark if it is next."""
        if self.is_(text):
            return self.next()
        return None

    def expect(self, text, what=None):
        if not self.is_(text):
            raise self.expected(what or f"{text!r}")
        return self.next()

    def name(self, what, choices=None):
        """A name; if `choices` is given, one of them."""
        token = self.peek()
        if token.kind != "name" or (choices is not None and token.text not in choices):
            listed = what if choices is None else f"{what} ({', '.join(map(str, choices))})"
            raise self.expected(listed, choices=choices or ())
        return self.next()

    def sequence(self, item, close):
        """`item()` once and again after each comma, up to the mark `close`."""
        out = [item()]
        while self.accept(","):
            out.append(item())
        self.expect(close, f"',' or {close!r}")
        return out


def number(line):
    """Takes a number token; its value is an int, or a float if it has a point or an exponent."""
    text = line.next().text.lower()
    if len(text) > MAX_DIGITS:
        raise line.error(f"a number of {len(text)} characters: at most {MAX_DIGITS}", line.tokens[line.at - 1])
    if text.startswith("0x"):
        return int(text, 16)
    return float(text) if "." in text or "e" in text else int(text)


FLOAT_NAMES = {"inf": float("inf"), "nan": float("nan")}


class Expressions:
    """+, -, * over numbers, parentheses and the named constants in `constants`. Integers have at most 512 bits."""

    def __init__(self, constants):
        self.constants = constants
        self.depth = 0

    def value(self, line):
        """An int or a float."""
        total = self._product(line)
        while line.is_("+", "-"):
            total = total + self._product(line) if line.next().text == "+" else total - self._product(line)
        return total

    def integer(self, line, what):
        """An int; a float is an error that says `what` was expected."""
        start = line.peek()
        value = self.value(line)
        if not isinstance(value, int):
            raise line.error(f"expected {what}, found the fraction {value}", start)
        return value

    def _product(self, line):
        start, total = line.peek(), self.atom(line)
        while line.accept("*"):
            total *= self.atom(line)
            if isinstance(total, int) and total.bit_length() > INSTRUCTION_BITS:
                raise line.error(f"the product has {total.bit_length()} bits: at most {INSTRUCTION_BITS}", start)
        return total

    def atom(self, line):
        """A number, a constant, a sign and an atom, or a value in parentheses."""
        if self.depth == MAX_DEPTH:
            raise line.error(f"more than {MAX_DEPTH} parentheses and signs inside each other")
        self.depth += 1
        try:
            return self._atom(line)
        finally:
            self.depth -= 1

    def _atom(self, line):
        token = line.peek()
        if line.accept("-"):
            return -self.atom(line)
        if line.accept("("):
            value = self.value(line)
            line.expect(")")
            return value
        if token.kind == "number":
            return number(line)
        if token.kind == "name":
            if token.text in self.constants:
                return self.constants[line.next().text]
            if token.text in FLOAT_NAMES:
                return FLOAT_NAMES[line.next().text]
            raise line.error(f"no constant {token.text!r}{suggestion(token.text, self.constants)}", token)
        raise line.expected("a number")
