"""Verilog is made once for what it is made from, and its files are whole."""

import json

import pytest

from isa.config import preset
from tb import generate
from tb.cache import Cache

TINY = preset("tiny")


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Stand-ins for the slow generator, that count."""
    seen = []
    monkeypatch.setattr(generate, "generate", lambda config, gated: (seen.append(config.name) or f"module {config.name}", ["pe"]))
    monkeypatch.setattr(generate, "ports", lambda config: [("clk", "input", 1)])
    monkeypatch.setenv("SYSTOLITH_CACHE", str(tmp_path / "cache"))
    return seen


def test_once_for_each_configuration(calls):
    for config in (TINY, TINY, preset("small"), TINY):
        assert generate.generated(config)[0] == f"module {config.name}"
    assert calls == ["tiny", "small"]


def test_again_when_a_source_changes(calls, monkeypatch, tmp_path):
    for folder in generate.SOURCES:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.py").write_text("1")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    for content in ("1", "2", "2"):
        (tmp_path / "hw" / "x.py").write_text(content)
        generate.generated(TINY)
    assert calls == ["tiny", "tiny"]


def test_files(calls, tmp_path):
    paths = generate.write_verilog(TINY, tmp_path / "out", Cache(tmp_path / "other"))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["manifest.json", "ports.json", "top.v"]
    assert [p.name for p in paths] == ["top.v", "ports.json", "manifest.json"]
    manifest = json.loads(paths[2].read_text())
    assert manifest["config_hash"] == f"{TINY.hash:#018x}" and manifest["cells"] == ["pe"]
    assert json.loads(paths[1].read_text()) == [{"name": "clk", "direction": "input", "bits": 1}]


def test_a_failed_generation_leaves_nothing(calls, monkeypatch, tmp_path):
    def fail(config, gated):
        raise KeyboardInterrupt

    monkeypatch.setattr(generate, "generate", fail)
    with pytest.raises(KeyboardInterrupt):
        generate.write_verilog(TINY, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir()) and not [p for p in (tmp_path / "cache").iterdir() if p.is_dir()]
