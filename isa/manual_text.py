"""The manual's prose: what the tables cannot say. The code named in each part is the definition."""

PREFACE = """
A core has `lanes` partitions of SBUF and PSUM, an array of `lanes` × `lanes` PEs, and one in-order queue per engine:
`pe` (tensor), `act` (activation), `vec` (vector) and one to four DMA queues. Every instruction says what must be
complete before it starts; nothing else orders the queues.

An operand on chip is a byte address in every partition, an element type, and a stride in elements for each of the
three free axes. The partitions and the sizes of the axes are given once per instruction; axis 2 runs fastest. A
stride may be negative, or zero (a source that is repeated). A DRAM operand is a byte offset from `dram_base` with
its own strides; for `ld` and `st` one of them belongs to the partitions.

A scalar operand (`scale`, `bias`, `a`, `b`) is absent, an immediate of 32 bits (fp32 bits in the float class, an int32
in the integer class), or one value a partition: bits 0 to 17 hold an SBUF address, bits 18 to 21 its type.
"""

ORDER = """
Every queue counts the instructions it has completed: the length of its completed prefix. An instruction compares a
count only if its mask bit is set; the wait is met when `completed - wait`, as a signed 16-bit number, is not negative.
So no queue may come 32,768 completions past a count that an unstarted instruction waits on, nor may an instruction be
compared while its count is more than 32,768 ahead; the assembler proves this and inserts `nop`s where it must.

Complete means, for compute, `ld`, `gat` and `mv`: the last write to the memory has happened; for `st`, `sca` and `cp`: a good
response has come for every burst; for `nop` and `mark`: all earlier instructions of the queue are complete. A start
that saw the count sees the data.

Inside a queue instructions start in order. A later one's reads may overtake an earlier one's writes, so a
read after a write on the same queue needs a wait on the own queue; nothing else inside a queue does.

Inside an instruction the destination may overlap a source only in place (same address, strides and element size);
for `mv` and `red` not at all. A scalar operand and the index of `gat` are sources of one element: no tensor overlaps them,
but `acc_write` may store where a scalar stood. A destination may not name one address twice; the rows of one `sca` are one
destination, `y` and the running sum of one `act` another. These are found by the assembler (rows excepted: they are
data) and the golden machine, not by hardware.

`tab` starts when the activation pipeline is empty and blocks it until the table is loaded. Running sums: each `act` forms
its own total; `start` sets the sum to it, `continue` adds it, and `acc_write` also stores the sum. A lane's sum that was never
started may be neither continued nor stored. The SBUF addresses of a row that `gat` or `sca` skips must exist all the same.
"""

NUMBERS = """
Defined by `isa/numerics.py` and `isa/convert.py` on bit patterns; golden machine and hardware agree with them bit for bit.

- fp32, nearest even, without subnormals: an operand below 2^-126 in magnitude counts as zero of its sign, and so does a
  result whose exact value is. Every NaN result is 0x7fc00000. Nothing is fused: `x*scale`, `+ bias`, `op0` and `op1` each round.
- `max` and `min` give NaN if an operand is NaN, and hold -0 below +0. Compares follow IEEE 754 and give 1 or 0.
- Conversion from fp32 rounds to nearest even. To fp8e4 and fp8e5 it saturates, infinities too; to bf16 and fp16 it overflows to
  infinity; to integers it saturates and NaN gives 0. NaN becomes 0x7fc0, 0x7e00, 0x7f (fp8e4) or 0x7e (fp8e5).
- The integer class works on int32: add and sub wrap, compares and max, min are signed, results saturate when they are stored
  as int8 or uint8.
- DMA, `sel`, and `alu` with two bypasses between equal types move bits unchanged.
- Tensor engine: a sum starts at +0 and takes x*w of rows 0 to K-1 in order, each operand first rounded to the PE's format
  (tf32: 10 fraction bits, bf16: 7). PSUM accumulation is one more fp32 addition. int8 PEs: sums are exact in int32, and
  PSUM = saturate(PSUM + sum) once per `mm`.
- `red add` and the total of an `act`: element i of an output is added to partial sum i mod 8; the result is
  ((s0+s1)+(s2+s3))+((s4+s5)+(s6+s7)). In the integer class the sum is modulo 2^32.
"""

TRAP_DOC = {
    "NONE": "no trap", "OPCODE": "no such instruction on this queue", "RESERVED": "a bit that must be zero is set",
    "PARTITION": "partitions beyond the lanes", "ADDRESS": "SBUF or PSUM access beyond the memory",
    "ALIGN": "an address that is no multiple of the element size", "TYPE": "an element type that is not allowed here",
    "OPERATION": "a value or operation that is not allowed here",
    "DRAM": "a DRAM access outside the window of `dram_bytes` from `dram_base`",
    "BUS_READ": "the bus answered a read with an error", "BUS_WRITE": "the bus answered a write with an error",
    "WATCHDOG": "no completion, beat or grant for `watchdog` cycles", "ROW": "a gather or scatter row beyond the limit",
    "FETCH": "the bus answered an instruction fetch with an error",
}
