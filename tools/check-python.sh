#!/bin/sh
# Says what is missing before a set-up starts: Python 3.11 with venv, and a C compiler.
set -u
python=${1:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
  echo "Seatrial needs Python 3.11 or newer; '$python' is not. Try: make PYTHON=python3.11" >&2
  exit 2
fi
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
  echo "'$python' has no venv; on Debian: apt-get install python3-venv" >&2
  exit 2
fi
if ! command -v cc > /dev/null && ! command -v gcc > /dev/null && ! command -v clang > /dev/null; then
  echo "No C compiler is on PATH; on Debian: apt-get install gcc libc6-dev" >&2
  exit 2
fi
