"""Files: outputs whole or not at all; what NumPy may raise over a damaged input."""

import os
import tokenize
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path

from sw.errors import InputError

DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, NotImplementedError, RuntimeError, MemoryError,
           SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error)  # from np.load and json.loads


def reason(error):
    """Text of an exception: the system's words for an OSError."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


@contextmanager
def whole(path, error=InputError):
    """Opens a binary file that takes the place of `path` when the body ends well; otherwise `path` stays as it was.

    Where `path` is a device or a pipe it is written directly. A failure to write raises `error`, at once if the folder
    does not allow it.
    """
    path = Path(path)
    partial = None
    try:
        if path.exists() and not path.is_file():
            target, place = None, path
        else:
            target = path.resolve()  # a link stays a link
            place = partial = target.with_name(f".{target.name}.{os.getpid()}")
        with open(place, "wb") as stream:
            yield stream
        if partial:
            partial.replace(target)
    except OSError as failure:
        raise error(f"{path}: cannot be written: {reason(failure)}") from failure
    finally:
        if partial:
            _forget(partial)


def _forget(partial):
    try:
        partial.unlink(missing_ok=True)
    except OSError:
        pass  # the folder does not exist, or is not one


def write_whole(path, content, error=InputError):
    """`content` (bytes or text) as the file `path`."""
    with whole(path, error) as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())
