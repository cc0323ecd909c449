"""Named tensors in assembly, and references to them: NAME or NAME[index, ...].

An index is a number (drops the axis), start:stop or start:stop:step (as in Python, but never clipped), or `*`: an
axis of stride 0 that is not in the tensor (broadcast).
"""

from dataclasses import dataclass

from isa.dtypes import DType
from sw.asm_lex import suggestion


@dataclass(frozen=True)
class Tensor:
    """A named tensor: memory dram, sbuf or psum; on chip the first axis is the partitions. Address in bytes."""

    name: str
    memory: str
    dtype: DType
    shape: tuple
    address: int
    role: str = ""

    @property
    def on_chip(self):
        return self.memory != "dram"

    def axes(self):
        """(size, stride in elements) of every axis, row-major; the partitions of a tensor on chip have stride 0."""
        out, stride = [], 1
        for size in reversed(self.shape):
            out.insert(0, (size, stride))
            stride *= size
        if self.on_chip:
            out[0] = (self.shape[0], 0)
        return out


@dataclass
class Ref:
    """A tensor operand as written. `axes`: (size or None, stride) of a named tensor's axes; None for a number."""

    token: object
    addr: int
    space: str = ""
    dtype: object = None
    axes: object = None
    parts: object = None    # (first, count) partitions of a named tensor on chip
    strides: object = None  # as written


def _slice(line, expressions):
    """One index: (token, kind, numbers)."""
    token = line.peek()
    if line.accept("*"):
        return token, "broadcast", ()
    numbers = [None, None, None]
    for i in range(3):
        if not line.is_(":", ",", "]"):
            numbers[i] = expressions.integer(line, "an index")
        if i == 2 or not line.accept(":"):
            break
    if i == 0:
        if numbers[0] is None:
            raise line.expected("an index")
        return token, "number", numbers[:1]
    return token, "slice", numbers


def _bounds(line, token, numbers, size, name):
    """(first, count, step) of a slice over `size` elements."""
    start, stop, step = numbers
    step = 1 if step is None else step
    if step == 0:
        raise line.error("the step of a slice must not be 0", token)
    start = (0 if step > 0 else size - 1) if start is None else start
    stop = (size if step > 0 else -1) if stop is None else stop
    chosen = range(start, stop, step)
    if not chosen or chosen[0] not in range(size) or chosen[-1] not in range(size):
        raise line.error(f"the slice takes {'nothing' if not chosen else f'{chosen[0]} to {chosen[-1]}'} of an axis "
                         f"of {name} with {size} elements", token)
    return chosen[0], len(chosen), step


def reference(line, tensors, expressions, wanted):
    """A Ref for the name at the current token; `wanted`: the memory it must be in, or ''."""
    token = line.next()
    if token.text not in tensors:
        choices = [*tensors, *expressions.constants]
        raise line.error(f"no tensor or constant {token.text!r}{suggestion(token.text, choices)}", token)
    tensor = tensors[token.text]
    if wanted and tensor.memory != wanted:
        raise line.error(f"expected a tensor in {wanted.upper()}; {tensor.name} is in {tensor.memory.upper()}", token)
    indices = []
    if line.accept("["):
        indices = line.sequence(lambda: _slice(line, expressions), "]")
    left, axes, offset = tensor.axes(), [], 0
    parts = (0, tensor.shape[0]) if tensor.on_chip else None
    for place, (where, kind, numbers) in enumerate(indices):
        if kind == "broadcast":
            axes.append((None, 0))
            continue
        if not left:
            raise line.error(f"{tensor.name} has {len(tensor.shape)} axes; this index is one too many", where)
        size, stride = left.pop(0)
        if kind == "number":
            first, count, step = _bounds(line, where, (numbers[0], numbers[0] + 1, 1), size, tensor.name)
        else:
            first, count, step = _bounds(line, where, numbers, size, tensor.name)
        if tensor.on_chip and len(left) == len(tensor.shape) - 1:
            if step != 1 or place:
                raise line.error("the partitions come first, with step 1", where)
            parts = first, count
            continue
        offset += first * stride
        if kind == "slice":
            axes.append((count, stride * step))
    if tensor.on_chip and len(left) == len(tensor.shape):
        if axes:
            raise line.error("the partitions come first, with step 1", indices[0][0])
        left.pop(0)
    axes += left
    return Ref(token, tensor.address + offset * tensor.dtype.size_bytes, tensor.memory, tensor.dtype, axes, parts)
