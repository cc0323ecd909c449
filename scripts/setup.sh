#!/usr/bin/env bash
# Set up a fresh machine: virtual environment, Python packages, C++ compiler and make.
set -eu
venv=$1

missing=
for tool in python3 g++ make; do
  command -v "$tool" >/dev/null || missing="$missing $tool"
done
python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
if [ -n "$missing" ]; then
  packages=$(echo "$missing" | sed 's/python3 /python3 /')
  line="apt-get install -y$packages"
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "setup: installing$packages"
    apt-get update -qq && $line
  else
    echo "setup: missing:$missing. Type: sudo $line" >&2
    exit 1
  fi
fi

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
echo "setup: Python packages (a minute the first time)"
"$venv/bin/python" -m pip install -q --disable-pip-version-check -e '.[test]'
