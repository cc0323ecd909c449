"""What takes long says so on standard error: a live line on a terminal, a few plain lines elsewhere.

    with task("simulating tiny") as detail:
        ...
        detail(f"{cycles:,} cycles")
"""

import sys
import time
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PLAIN_SECONDS = 30  # between lines where there is no terminal

_live = None  # the one display; tasks inside tasks are lines of it


def say(text):
    """One line for the person who waits."""
    print(f"systolith: {text}", file=sys.stderr, flush=True)


@contextmanager
def task(text, announce=False):
    """Shows `text` while the body runs; yields a function that sets the detail behind it. `announce` also tells, where
    there is no terminal, the start and the end."""
    console = Console(stderr=True)
    if console.is_terminal:
        with _display(console) as bars:
            line = bars.add_task(text, total=None, detail="")
            try:
                yield lambda detail: bars.update(line, detail=detail)
            finally:
                bars.remove_task(line)
        return
    start = last = time.monotonic()
    if announce:
        say(f"{text} ...")

    def plain(detail):
        nonlocal last
        if time.monotonic() - last > PLAIN_SECONDS:
            last = time.monotonic()
            say(f"{text}: {detail}, {last - start:.0f} s")

    yield plain
    if announce:
        say(f"{text}: done in {time.monotonic() - start:.1f} s")


@contextmanager
def _display(console):
    global _live
    if _live is not None:
        yield _live
        return
    columns = SpinnerColumn(), TextColumn("{task.description} {task.fields[detail]}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as _live:
        try:
            yield _live
        finally:
            _live = None
