#!/usr/bin/env bash
# The kernel side's tests on other versions than the environment's own: the oldest JAX that is supported,
# and the newest JAX on the newest Python. Each gets an environment of its own, made once.
# --check: only see whether the Pythons are there. --prepare: only make the environments.
set -euo pipefail

KERNEL_SIDE=(tests/cell tests/magics tests/timing tests/tracing tests/timeline/test_cpu_traces.py)

find_python() {  # VERSION: a Python of that version, from the PATH or pyenv
  local found
  found=$(command -v "python$1" || true)
  if [ -n "$found" ] && "$found" -c '' 2>/dev/null; then echo "$found"; return; fi
  ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python 2>/dev/null | sort -V | tail -n 1
}

require_python() {  # VERSION
  [ -n "$(find_python "$1")" ] && return
  echo "The tests also run on Python $1, which was not found: install it (pyenv install $1, or your" \
       "distribution's python$1), then run this again." >&2
  exit 1
}

prepare() {  # PYTHON_VERSION REQUIREMENT...
  local venv=.venv-compat-$1
  if [ ! -f "$venv/.ready" ]; then
    rm -rf "$venv"
    "$(find_python "$1")" -m venv "$venv"
    "$venv/bin/pip" install -q "${@:2}" cloudpickle grpcio lz4 jupyter-server-proxy nbclient nvtx numpy pandas pexpect \
      psutil pytest pytest-timeout pytest-xdist 'xprof>=2.24,<2.25'
    touch "$venv/.ready"
  fi
}

run() {  # PYTHON_VERSION
  local venv=.venv-compat-$1
  echo "== Python $1, $("$venv/bin/python" -c 'import jax; print("jax", jax.__version__)')"
  scripts/run_tests.sh "$venv/bin/python" "${KERNEL_SIDE[@]}"
}

require_python 3.11
require_python 3.13
[ "${1:-}" = --check ] && exit
prepare 3.11 'jax==0.6.*' 'ipython==8.20.*' 'ipykernel==6.29.*'
prepare 3.13 jax ipython ipykernel
[ "${1:-}" = --prepare ] && exit
run 3.11
run 3.13
