#!/usr/bin/env bash
# run_tests.sh PYTHON [PATH...]: first the tests that don't care what else the machine does, WORKERS files at the
# same time (2 unless said); then those that measure time, alone.
set -euo pipefail
python=$1
shift
"$python" -m pytest -n "${WORKERS:-2}" --dist loadfile --no-loadscope-reorder -m 'not gpu and not measures_time' "$@"
"$python" -m pytest -m 'measures_time and not gpu' "$@"
