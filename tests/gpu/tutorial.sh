#!/usr/bin/env bash
# Runs the course on this machine's GPU and brings back what it gave: tutorial.sh DIRECTORY.
# DIRECTORY gets recorded/ (unpack it over docs/recorded/gpu) and store/ (the captures, for
# `python -m scripts.picture_lessons gpu DIRECTORY/store`). PYTHON names the interpreter of an environment with
# jax for CUDA, ipykernel, nbclient, xprof and requests; NSYS_PATH may name a folder with nsys.
set -euo pipefail
cd "$(dirname "$0")/../.."
directory=$(realpath -m "${1:?"usage: $0 DIRECTORY"}")
python=${PYTHON:-python3}
export PATH="${NSYS_PATH:+$NSYS_PATH:}$PATH"

mkdir -p "$directory"
status=0
"$python" -m scripts.record_lessons gpu --store "$directory/store" || status=$?
cp -r docs/recorded/gpu "$directory/recorded"
exit "$status"
