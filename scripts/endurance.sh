#!/usr/bin/env bash
# endurance.sh PYTHON [PYTEST ARGUMENT...]: the tests of tests/hardening with their full numbers: ten moments of each
# kill, 100,000 inputs of each fuzzer, 500 traces in one kernel. Takes hours; alone on the machine.
set -euo pipefail
python=$1
shift
JAXPROF_ENDURANCE=full "$python" -m pytest tests/hardening --timeout 0 --capture=sys "$@"
