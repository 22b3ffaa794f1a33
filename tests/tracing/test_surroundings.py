from __future__ import annotations

import json

import jax
import pytest

from jupyterlab_jaxprof.tracing import trace_environment
from jupyterlab_jaxprof.tracing.surroundings import notices_before


def test_environment_names_every_local_device_and_is_plain_json():
    environment = trace_environment()
    assert len(environment["devices"]) == jax.local_device_count()
    assert environment["devices"][0]["platform"] == jax.local_devices()[0].platform
    assert environment["jax"] == jax.__version__
    assert json.loads(json.dumps(environment)) == environment


@pytest.mark.parametrize(
    "variable",
    ["NSYS_PROFILING_SESSION_ID", "QUADD_INJECTION_PROXY", "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH"],
)
def test_a_kernel_under_nsys_is_told(variable):
    (notice,) = notices_before({variable: "1"})
    assert "under NVIDIA Nsight" in notice


@pytest.mark.parametrize("value", ["''", '""'])
def test_quotes_in_the_command_buffer_flag_are_told(value):
    (notice,) = notices_before({"XLA_FLAGS": f"--xla_a=1 --xla_gpu_enable_command_buffer={value}"})
    assert "not empty" in notice


def test_nothing_is_told_without_cause():
    assert notices_before({"XLA_FLAGS": "--xla_gpu_enable_command_buffer=", "NS": "1"}) == []
