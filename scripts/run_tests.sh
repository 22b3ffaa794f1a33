#!/usr/bin/env bash
# run_tests.sh PYTHON [PATH...]: first the tests that don't care what else the machine does, WORKERS files at the
# same time (2 unless said); then those that measure time, alone. What fails is run once more by itself: a test
# that fails twice has failed, one that doesn't was disturbed, and is named.
set -euo pipefail
python=$1
shift

run() {
  local status=0
  "$python" -m pytest "$@" || status=$?
  if [[ $status -eq 1 ]]; then # tests have failed, and nothing else is wrong
    echo "run_tests.sh: what has failed is run once more, alone." >&2
    "$python" -m pytest --last-failed --last-failed-no-failures none "$@" -n 0 -v
  else
    return "$status"
  fi
}

run -n "${WORKERS:-2}" --dist loadfile --no-loadscope-reorder -m 'not gpu and not measures_time' "$@"
run -n 0 -m 'measures_time and not gpu' "$@"
