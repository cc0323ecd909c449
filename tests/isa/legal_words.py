"""Random legal instructions: plausible fields, then each rule of the table made to hold."""

from isa.dtypes import DType
from isa.encode import decode, encode
from isa.legality import ALU_FLOAT, ALU_INT, PE_TYPES, check
from isa.table import ALL_TYPES, INSTRUCTIONS, INT_TYPES, Mode
from tests.isa.random_words import plausible

QUEUE = {"any": "pe", "dma": "dma1"}
LEGAL = tuple(i for i in INSTRUCTIONS if not i.reserved)


def _choose(rng, choices):
    return sorted(choices)[rng.integers(len(choices))]


def _repair(rng, kind, args, v, config):
    if kind == "partitions":
        v[args[0]] = int(rng.integers(config.lanes - v[args[1]] + 1))
    elif kind in ("values", "types"):
        v[args[0]] = int(_choose(rng, args[1]))
    elif kind == "pe_types":
        v[args[0]] = int(_choose(rng, PE_TYPES[config.pe]))
    elif kind == "psum32" and v[f"{args[0]}_space"]:
        v[f"{args[0]}_type"] = int(_choose(rng, {DType.FP32, DType.INT32}))
    elif kind == "alu_op":
        v[args[0]] = int(_choose(rng, ALU_INT if v["int"] else ALU_FLOAT))
    elif kind == "int_types" and v["int"]:
        for name in args:
            wide = v.get(f"{name}_space")
            v[f"{name}_type"] = int(DType.INT32) if wide else int(_choose(rng, INT_TYPES))
    elif kind == "one_psum" and v[f"{args[0]}_space"]:
        v[f"{args[1]}_space"] = 0
    elif kind == "same":
        v[args[1]] = v[args[0]]
    elif kind == "scalar" and v[args[0]] == Mode.PARTITION:
        v[args[1]] = int(rng.integers(1 << 10)) * 4 | int(_choose(rng, ALL_TYPES)) << 18
    elif kind == "b_operand" and v[args[0]] in (Mode.PARTITION, Mode.TENSOR):
        v[f"{args[1]}_type"] = int(DType.FP32 if v[f"{args[1]}_space"] else _choose(rng, ALL_TYPES))
        v[f"{args[1]}_addr"] = 4 * int(rng.integers(1 << 10))


def legal(rng, instruction, config):
    """(word, queue): a legal instruction with random tag and waits."""
    queue = QUEUE.get(instruction.queue, instruction.queue)
    placed = instruction.placed
    for _ in range(100):
        _, v = decode(plausible(rng, instruction, config))
        for rule in instruction.rules:
            _repair(rng, rule.kind, rule.args, v, config)
        v["tag"] = int(rng.integers(1 << 16))
        v["wait_mask"] = int(rng.integers(256)) if rng.integers(2) else 0
        v |= {f"wait{q}": int(rng.integers(1 << 16)) for q in range(8) if rng.integers(2)}
        unions = {f.name for f in placed.values() if f.over and v.get(f"{f.name[:-4]}_mode") != Mode.IMM}
        head = ("opcode", "flags")
        word = encode(instruction.name, **{k: x for k, x in v.items() if k not in unions and k not in head})
        if check(word, queue, config) is None:
            return word, queue
    raise AssertionError(f"no legal {instruction.name} in 100 attempts")
