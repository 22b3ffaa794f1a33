#!/usr/bin/env bash
# Prints the requirement that gives this machine's JAX: with CUDA where an NVIDIA driver answers, else for the CPU.
# CUDA 13 needs driver 580 or newer (NVIDIA's CUDA compatibility table).
set -euo pipefail
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | cut -d. -f1 || true)
case "$driver" in
  '' | *[!0-9]*) echo 'jax' ;;
  *) if [ "$driver" -ge 580 ]; then echo 'jax[cuda13]'; else echo 'jax[cuda12]'; fi ;;
esac
