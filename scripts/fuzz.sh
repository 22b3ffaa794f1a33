#!/usr/bin/env bash
# fuzz.sh PYTHON [TARGET...]: coverage-guided fuzzing (atheris, of the extra 'fuzz') of what reads bytes: capture.json,
# traces, exports of Nsight reports, zip archives. RUNS inputs each (100,000), one target after the other; what breaks a
# reader is printed and kept as crash-* in the current directory. The rest is fuzzed by scripts/endurance.sh.
set -euo pipefail
python=$1
shift
cd "$(dirname "$0")/.."
for target in "${@:-records traces exports archives}"; do
  for each in $target; do
    echo "== $each"
    "$python" -m tests.hardening.fuzz.readers "$each" "-runs=${RUNS:-100000}" -timeout=60 -rss_limit_mb=2048 \
      -print_final_stats=1
  done
done
