"""`make sim`'s table: every kind of row on tiny, and what goes wrong is a verdict and an exit status."""

import numpy as np
import pytest

from sw.errors import TrapError
from tb import sim
from tb.suite import EXAMPLES, assembly, cases, matmul


@pytest.fixture
def short(monkeypatch):
    """tiny only, one program a kind."""
    monkeypatch.setattr(sim, "CONFIGS", ("tiny",))
    monkeypatch.setattr(sim, "cases", lambda: [matmul("tiny", 5, 6, 7, "bf16")])
    return monkeypatch


def test_table(short, capsys):
    assert sim.main() == 0
    out, err = capsys.readouterr()
    for words in ("Verilog", "cocotb: matmul", *(f"systolith run {e}" for e in EXAMPLES), "matmul 5x6x7 bf16", "PE use", "cycles/s"):
        assert words in out, out
    assert out.count(" equal ") == 2 * len(EXAMPLES) + 2 and out.count(" written ") == 1
    assert "systolith: tiny: Verilog" in err


def test_failures_are_rows(short, capsys):
    """A wrong result, a trap and a failing command each give a row; the rest still runs."""
    def trap(*_):
        raise TrapError("no answer")

    Right = sim.Device

    class Wrong(Right):
        def run(self, program, inputs=None):
            result = super().run(program, inputs)
            result.outputs = {n: np.where(np.arange(a.size).reshape(a.shape) == 3, a + 1, a) for n, a in result.outputs.items()}
            return result

    short.setattr(sim, "cocotb", trap)
    short.setattr(sim, "EXAMPLES", ("examples/none.sys",))
    short.setattr(sim, "Device", lambda config, backend="golden", **bus: {"rtl": Wrong, "golden": Right}[backend](config, backend,
                                                                                                              **bus))
    assert sim.main() == 1
    out, _ = capsys.readouterr()
    assert "no answer" in out and "exit status 2" in out and "bytes differ" in out, out


def test_suite_covers_the_presets():
    found = list(cases())
    assert {c.config.name for c in found} >= set(sim.CONFIGS)
    assert {c.name for c in found} >= set(EXAMPLES) and len(EXAMPLES) >= 2
    assert assembly(EXAMPLES[0]).inputs
