"""What a command ends with, and what it says then: one place for `systolith`, `make sim` and `make bench`."""

import sys

from isa.config import ConfigError
from isa.memory import MachineError
from sw.errors import HostError, SystolithError, TrapError
from sw.files import reason

FAILED, BAD_INPUT, HOST, INTERRUPTED = 1, 2, 3, 130


def guarded(function):
    """Exit status of `function()`: its own (None is 0); 1 if a program failed, 2 for bad input, 3 if this machine cannot,
    130 after Ctrl-C. The reason goes to standard error; a traceback means a bug."""
    try:
        return function() or 0
    except (TrapError, MachineError) as error:
        return _say(error, FAILED)
    except HostError as error:
        return _say(error, HOST)
    except (SystolithError, ConfigError) as error:
        return _say(error, BAD_INPUT)
    except OSError as error:
        return _say(f"{error.filename or 'input or output'}: {reason(error)}", HOST)
    except MemoryError as error:
        return _say(f"not enough memory: {error or 'no details'}", HOST)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)


def _say(text, status):
    print(f"systolith: {text}", file=sys.stderr, flush=True)
    return status
