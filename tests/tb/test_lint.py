"""The emitted Verilog is clean under -Wall but for the named waivers; planted faults are seen."""

import pytest

from hw.top import generate
from isa.config import preset
from tb.lint import WAIVERS, lint, tools

TOOLS = tools()


@pytest.fixture(scope="module")
def text():
    return generate(preset("tiny"))[0]


@pytest.mark.parametrize("name,command,env,modern", TOOLS, ids=[t[0] for t in TOOLS])
def test_clean(text, name, command, env, modern):
    assert lint(text, command, env, modern) == ""


@pytest.mark.parametrize("name,command,env,modern", TOOLS, ids=[t[0] for t in TOOLS])
@pytest.mark.parametrize("fault,warning", [
    ("always @* if (a) o = 1;", "LATCH"), ("assign o = o & a; wire unused = 0;", "UNOPTFLAT"), ("assign o = b;", "UNDRIVEN")])
def test_faults_are_seen(name, command, env, modern, fault, warning):
    kind = "reg" if "always" in fault else "wire"
    bad = f"module top(input a, output {kind} o);\n  wire b;\n  {fault}\nendmodule\n"
    assert warning in lint(bad, command, env, modern)


@pytest.mark.parametrize("name,command,env,modern", TOOLS, ids=[t[0] for t in TOOLS])
def test_syntax_error_is_seen(name, command, env, modern):
    assert lint("module top(input a;\nendmodule\n", command, env, modern) != ""


def test_reasons():
    assert all(len(reason) > 15 for reason in WAIVERS.values())
