"""Errors of the software: each says what was required and what came, and names the place."""


class SystolithError(Exception):
    """Base of all errors that a user's input can cause."""


class BuildError(SystolithError):
    """The builder or compiler cannot do what was asked."""


class CapacityError(BuildError):
    """Tensors that do not fit a memory."""


class AsmError(SystolithError):
    """Malformed assembly; `str` begins with file:line:column."""


class ProgramError(SystolithError):
    """A program file that is truncated, corrupted, or for another machine."""


class InputError(SystolithError):
    """Inputs that do not match a program or device."""


class HostError(SystolithError):
    """This machine cannot: a tool is missing or fails, a folder cannot be written, memory is short."""


class TrapError(SystolithError):
    """The core stopped with a report, or does not answer."""

    def __init__(self, message=None, *, trap=None, queue=None, index=None, address=None, queues=None, bus_idle=True):
        self.trap, self.queue, self.index, self.address, self.bus_idle = trap, queue, index, address, bus_idle
        self.queues = queues
        super().__init__(message or self._text())

    def _text(self, where="", text=""):
        out = f"trap {self.trap.name} (code {int(self.trap)}) at {self.queue}[{self.index}]{text}, address {self.address:#x}"
        if not self.bus_idle:
            out += "; the bus owes answers"
        return out + where

    def located(self, program):
        """The same error with the instruction disassembled and its source line, where the program knows them."""
        if self.trap is None:
            return self
        from sw.disasm import instruction_text  # disassembly needs these errors
        words = program.queues.get(self.queue, ())
        text = where = ""
        if self.index < len(words):
            text = instruction_text(words[self.index], self.queue, program.config, tag=False)
            illegal = text.startswith(f"{self.queue} word ")
            text = f" (opcode {words[self.index] & 0xFF:#04x})" if illegal else f" `{text}`"
            tag = words[self.index] >> 16 & 0xFFFF
            if tag < len(program.source):
                where = f" ({program.source[tag]})"
        else:
            text = " (no instruction there: none waits, none runs)"
        error = TrapError(self._text(where, text), trap=self.trap, queue=self.queue, index=self.index,
                          address=self.address, queues=self.queues, bus_idle=self.bus_idle)
        return error
