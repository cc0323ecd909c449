"""Build cache: a folder per content hash, complete or absent.

A build happens in a temporary folder beside its final place and is renamed when it is finished, so that an
interrupted build leaves nothing that could be mistaken for a result. A lock file per key makes a second process
wait for the first one's result instead of building again; the lock is the kernel's, so it dies with its owner.
"""

import fcntl
import hashlib
import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

from sw.errors import HostError
from sw.progress import say, task

DEFAULT = Path(__file__).resolve().parent.parent / "build" / "cache"
WAIT_SECONDS = 1800
POLL_SECONDS = 0.1


class CacheError(HostError):
    """The cache folder cannot be used; the message names it and the variable that moves it."""


def digest(parts):
    """Hexadecimal hash of a sequence of str or bytes; each part counts with its length."""
    h = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode()
        h.update(len(raw).to_bytes(8, "little") + raw)
    return h.hexdigest()[:32]


class Cache:
    """Results under `root` (default: $SYSTOLITH_CACHE, else build/cache of this repository)."""

    def __init__(self, root=None):
        self.root = Path(root or os.environ.get("SYSTOLITH_CACHE") or DEFAULT).absolute()

    def get(self, key, build, label):
        """Folder of `key`, made by `build(folder)` if it is not there; `label` is what the progress line calls it."""
        final = self.root / key
        if final.is_dir():
            return final
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = open(self.root / f"{key}.lock", "w")
        except OSError as error:
            raise self._unusable(error) from error
        with lock, self._locked(lock, label):
            if final.is_dir():  # another process finished it while this one waited
                return final
            for stale in self.root.glob(f"{key}.tmp*"):  # its builder is dead: we hold the lock
                shutil.rmtree(stale, ignore_errors=True)
            work = self.root / f"{key}.tmp{os.getpid()}"
            try:
                work.mkdir()
            except OSError as error:
                raise self._unusable(error) from error
            try:
                with task(f"building {label} in {self.root}", announce=True):
                    build(work)
                work.rename(final)
            except OSError as error:
                raise self._unusable(error) from error
            finally:
                shutil.rmtree(work, ignore_errors=True)
        return final

    def _unusable(self, error):
        return CacheError(f"cannot write the build cache {self.root}: {error}. "
                          "Set SYSTOLITH_CACHE to a folder you can write to.")

    @contextmanager
    def _locked(self, lock, label):
        deadline = time.monotonic() + WAIT_SECONDS
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if not told:
                    say(f"waiting for another process that builds {label} ({lock.name})")
                    told = True
                if time.monotonic() > deadline:
                    raise CacheError(f"waited {WAIT_SECONDS} s for {lock.name}; another process holds it") from error
                time.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
