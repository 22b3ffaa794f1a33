#!/usr/bin/env bash
# Runs what needs an NVIDIA GPU: the tests of this folder, then the example notebook in a real kernel.
# Needs an environment with jax for CUDA, ipykernel, nbclient and pytest; PYTHON names its interpreter.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}

"$python" -c 'import jax, sys; sys.exit(not any(d.platform == "gpu" for d in jax.devices()))' || {
  echo "JAX sees no GPU here: these tests have nothing to run on." >&2
  exit 1
}
"$python" -m pytest -m gpu tests/gpu "$@"
"$python" scripts/run_notebook.py examples/training_step.ipynb
