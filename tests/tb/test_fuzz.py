"""The fuzzer itself: what it draws, that equal cores pass, that a planted difference is found and shortened."""

import io

import numpy as np
import pytest
from rich.console import Console

from isa.config import PE_KINDS, ConfigError, preset
from isa.encode import decode
from isa.table import INSTRUCTIONS
from sw.asm import assemble, assemble_file
from sw.device import Device
from sw.disasm import disassemble
from tb.fuzz import configuration, drawn, fuzz
from tb.fuzz_coverage import Coverage
from tb.fuzz_program import LATENCIES, make
from tb.fuzz_run import expected
from tb.fuzz_shrink import as_program
from tb.fuzz_weave import weave

TINY = preset("tiny")
FOR_EVER = 1000
PROGRAMS = 16


@pytest.fixture(scope="module")
def programs():
    return [make(TINY, seed) for seed in range(100)]


def test_every_instruction_type_mode_and_flag(programs):
    """In 100 programs each instruction has a share, and nearly every value of its small fields occurs."""
    coverage = Coverage()
    for program in programs:
        coverage.add(program)
    total = sum(coverage.instructions.values())
    for i in INSTRUCTIONS:
        assert i.reserved or coverage.instructions[i.name] > (total // 50 if i.fields else 5), i.name
    missing = coverage.missing(TINY)
    print(missing)
    assert not [m for m in missing if " op" not in m]
    assert len(missing) < 15


def test_dependencies_at_every_distance(programs):
    """Waits for the own queue's last instruction, the one before, ...; and instructions that wait for three queues."""
    distances, most = set(), 0
    for program in programs:
        for queue, words in program.queues.items():
            for index, word in enumerate(words):
                v = decode(word)[1]
                waits = {q: v[f"wait{i}"] for i, q in enumerate(program.config.queues) if v["wait_mask"] >> i & 1}
                most = max(most, len(waits))
                if queue in waits:
                    distances.add(index - waits[queue])
    assert distances >= set(range(5)) and most >= 3


def test_buses_and_styles(programs):
    assert {p.bus["latency"] for p in programs} == set(LATENCIES)
    assert any(p.bus["stall"] for p in programs) and any(p.bus["bandwidth"] for p in programs)


def test_saved_programs_assemble_to_themselves(programs):
    """What the golden machine runs, the assembler accepts, and the file that a failure leaves holds the same words."""
    for program in programs[:30]:
        again = assemble(disassemble(as_program(program)))
        assert again.queues == {q: words for q, words in program.queues.items() if words}, program.seed


def test_same_seed_same_program():
    one, other = make(TINY, 7), make(TINY, 7)
    assert one.queues == other.queues and one.bus == other.bus and np.array_equal(one.image, other.image)
    assert make(TINY, 8).queues != one.queues


def test_waits_are_needed(programs):
    """Without its waits a program is refused as a race: the fuzzer's programs are tight."""
    program = max(programs, key=lambda p: len(p.items))
    bare = {q: [decode(w)[0].all_fields["wait_mask"].insert(w, 0) for w in ws] for q, ws in program.queues.items()}
    with pytest.raises(Exception, match="never written|race"):
        expected(type(program)(**{**vars(program), "queues": bare}))


def test_drawn_configurations():
    """They reach every PE kind, bus width and bank count, and are named by their seed."""
    many = [drawn(seed) for seed in range(60)]
    assert {c.pe for c in many} == set(PE_KINDS) and {c.axi_data_bits for c in many} == {32, 64, 128, 256, 512}
    assert {c.sbuf_banks for c in many} == {1, 2, 4, 8, 16} and {c.dma_queues for c in many} == {1, 2, 3, 4}
    assert configuration("drawn:5") == drawn(5) and configuration("small") is preset("small")
    for name in ("drawn:x", "huge"):
        with pytest.raises(ConfigError):
            configuration(name)


@pytest.mark.parametrize("seed", [2, 5, 9, 11])
@pytest.mark.parametrize("name", ["small", "edge", "base"])
def test_presets_give_programs(name, seed):
    program = make(preset(name), seed)
    assert expected(program).size == program.image.size


@pytest.mark.parametrize("seed", [1, 4, 12, 19])
def test_any_legal_configuration_gives_programs(seed):
    program = make(drawn(seed), seed)
    assert expected(program).size == program.image.size


def test_rtl_agrees():
    """Fixed seeds on tiny, one after the other on one core."""
    outcome = fuzz(TINY, FOR_EVER, 0, Console(file=io.StringIO()), limit=PROGRAMS)
    assert outcome.programs == PROGRAMS and not outcome.failures, outcome.failures
    assert outcome.cycles > 1000 * PROGRAMS and outcome.instructions > 5 * PROGRAMS


def broken_scatter(program, dram):
    """An RTL whose `sca` writes a wrong byte."""
    for item in program.items:
        instruction, v = decode(item.word)
        if instruction.name == "sca":
            dram[v["d_addr"]] ^= 1
    return dram


def test_a_planted_difference_is_found_and_shortened(tmp_path):
    text = io.StringIO()
    outcome = fuzz(TINY, FOR_EVER, 0, Console(file=text), limit=PROGRAMS, folder=tmp_path, plant=broken_scatter,
                   most_failures=1, shrink_seconds=40)
    (seed, difference, path), = outcome.failures
    assert difference.kind == "bytes" and str(seed) in path.name
    program = assemble_file(path)
    assert sum(map(len, program.queues.values())) <= 3
    assert [decode(w)[0].name for words in program.queues.values() for w in words].count("sca") == 1
    assert f"seed {seed}" in path.read_text() and "systolith run" in path.read_text()
    saved = Device(TINY).run(program).outputs["memory"]
    original = make(TINY, seed)
    assert saved.size == original.image.size and weave(TINY, original.image, original.known, original.items)
