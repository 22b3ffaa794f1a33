#!/usr/bin/env bash
# Records the labelled programs on this machine's GPU: record_captures.sh DIRECTORY [options of record_captures.py].
# PYTHON names the interpreter of an environment with jax for CUDA; NSYS the nsys to take reports with, if any.
set -euo pipefail
cd "$(dirname "$0")/../.."
directory=$(realpath -m "${1:?"usage: $0 DIRECTORY [options]"}")
shift
exec "${PYTHON:-python3}" -m tests.gpu.record_captures "$directory" ${NSYS:+--nsys "$NSYS"} "$@"
