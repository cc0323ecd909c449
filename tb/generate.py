"""`make verilog`: write the Verilog, ports and manifest of a configuration."""

import sys

from hw.top import write_verilog
from isa.config import ConfigError, preset


def main(arguments):
    """CONFIG FOLDER; exit status 2 for a configuration that does not exist."""
    try:
        config = preset(arguments[0])
    except ConfigError as error:
        print(f"systolith: {error}", file=sys.stderr)
        return 2
    for path in write_verilog(config, arguments[1]):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
