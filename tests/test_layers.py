"""The layer rule: isa <- hw, isa <- sw, all <- tb; only the command line may import tb, inside a function."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {"isa": {"isa"}, "hw": {"isa", "hw"}, "sw": {"isa", "sw"}, "tb": {"isa", "hw", "sw", "tb"},
           "systolith": {"isa", "sw", "systolith"}}
NO_AMARANTH = {"isa", "sw"}
MAY_IMPORT_LATE = {"sw/cli.py", "sw/cli_run.py", "sw/device.py"}  # the rtl backend is found at run time
LIMIT = 400


def imports(path):
    """(top package, at module level) of every import in a file."""
    tree = ast.parse(path.read_text())
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            yield name.split(".")[0], id(node) in top


FILES = [p for package in ALLOWED for p in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_layer(path):
    package = path.relative_to(ROOT).parts[0]
    for name, at_top in imports(path):
        if name in ALLOWED:
            late = not at_top and name == "tb" and str(path.relative_to(ROOT)) in MAY_IMPORT_LATE
            assert name in ALLOWED[package] or late, f"{path}: {package} may not import {name}"
        assert not (name == "amaranth" and package in NO_AMARANTH), f"{path}: {package} may not import amaranth"


def test_all_packages_seen():
    assert {p.relative_to(ROOT).parts[0] for p in FILES} == set(ALLOWED)


@pytest.mark.parametrize("path", FILES + sorted((ROOT / "tests").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_size(path):
    lines = len(path.read_text().splitlines())
    assert lines <= LIMIT, f"{path} has {lines} lines; the limit is {LIMIT}"
