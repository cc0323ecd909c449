"""The build cache: complete or absent, one builder at a time, clear when it cannot be written."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tb.cache import Cache, CacheError, digest

ROOT = Path(__file__).resolve().parents[2]


def test_digest_separates_parts():
    assert digest(["ab", "c"]) != digest(["a", "bc"]) and digest(["a", b"b"]) == digest([b"a", "b"])


def test_builds_once(tmp_path, capsys):
    calls = []

    def build(work):
        calls.append(work)
        (work / "x").write_text("1")

    cache = Cache(tmp_path / "deep" / "cache")
    for _ in range(2):
        assert (cache.get("k", build, "thing") / "x").read_text() == "1"
    assert len(calls) == 1
    assert "building thing" in capsys.readouterr().err
    assert sorted(p.name for p in cache.root.iterdir()) == ["k", "k.lock"]


def test_environment_variable_moves_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SYSTOLITH_CACHE", str(tmp_path))
    assert Cache().root == tmp_path
    monkeypatch.delenv("SYSTOLITH_CACHE")
    assert Cache().root == ROOT / "build" / "cache"


def test_failed_build_leaves_nothing(tmp_path):
    def build(work):
        (work / "half").write_text("")
        raise ValueError("no")

    cache = Cache(tmp_path)
    with pytest.raises(ValueError, match="no"):
        cache.get("k", build, "thing")
    assert [p.name for p in tmp_path.iterdir()] == ["k.lock"]


def _slow(root, out):
    def build(work):
        (work / "by").write_text(str(os.getpid()))
        time.sleep(0.7)

    out.put((os.getpid(), (Cache(root).get("k", build, "thing") / "by").read_text()))


def test_two_processes_build_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    workers = [context.Process(target=_slow, args=(tmp_path, out)) for _ in range(2)]
    for w in workers:
        w.start()
    results = [out.get(timeout=30) for _ in workers]
    for w in workers:
        w.join(30)
    assert len({by for _, by in results}) == 1 and len({pid for pid, _ in results}) == 2


KILLED = """
import sys, time
from tb.cache import Cache
def build(work):
    (work / "half").write_text("")
    print("inside", flush=True)
    time.sleep(60)
Cache(sys.argv[1]).get("k", build, "thing")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_build_leaves_no_half(tmp_path, number):
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    assert child.stdout.readline() == "inside\n"
    child.send_signal(number)
    child.wait(10)
    child.stdout.close()
    assert not (tmp_path / "k").exists()
    made = Cache(tmp_path).get("k", lambda work: (work / "x").write_text(""), "thing")
    assert [p.name for p in made.iterdir()] == ["x"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k", "k.lock"]


def test_unwritable_cache_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CacheError, match=f"cannot write the build cache {blocked}/sub.*Set SYSTOLITH_CACHE"):
        Cache(blocked / "sub").get("k", lambda work: None, "thing")


def test_read_only_folder_is_named_but_serves_what_it_has(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache.get("k", lambda work: None, "thing")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # root may write anywhere, so the refusal is planted
    assert cache.get("k", lambda work: None, "thing") == tmp_path / "k"
    with pytest.raises(CacheError, match="Permission denied"):
        cache.get("other", lambda work: None, "thing")


def test_waits_no_longer_than_the_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr("tb.cache.WAIT_SECONDS", 0.3)

    def outer(work):
        with pytest.raises(CacheError, match="another process holds it"):
            Cache(tmp_path).get("k", lambda inner: None, "thing")

    Cache(tmp_path).get("k", outer, "thing")
