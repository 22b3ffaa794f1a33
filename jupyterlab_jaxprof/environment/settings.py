"""What is known to go wrong with environment variables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from .problem import Check, Found, Problem, export, note, problem, unset

_ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm")
_PREALLOCATE = ("true", "True", "1", "false", "False", "0", "")
_TRUE = ("1", "true", "on", "yes", "y", "t")
#: What makes every operation wait, or runs none of it compiled.
_SLOWED = {
    "JAX_DISABLE_JIT": "JAX compiles nothing",
    "JAX_DEBUG_NANS": "JAX waits for every result to look for NaN",
    "JAX_DEBUG_INFS": "JAX waits for every result to look for infinities",
    "CUDA_LAUNCH_BLOCKING": "every launch waits for its kernel",
}


def _variables(found: Found) -> Mapping[str, str]:
    return found["variables"]


def _platforms(found: Found) -> list[str]:
    said = _variables(found).get("JAX_PLATFORMS", "").lower()
    return [name.strip() for name in said.split(",") if name.strip()]


def _two_fractions(found: Found) -> Iterator[Problem]:
    if {"XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"} <= set(_variables(found)):
        yield problem(
            "XLA_PYTHON_CLIENT_MEM_FRACTION and XLA_CLIENT_MEM_FRACTION are both set: jaxlib refuses that.",
            unset("XLA_PYTHON_CLIENT_MEM_FRACTION"),
            needed=True,
        )


def _fraction(found: Found) -> Iterator[Problem]:
    for name in ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"):
        value = _variables(found).get(name, "")
        unified = _variables(found).get("TF_FORCE_UNIFIED_MEMORY", "") not in ("", "0", "false")
        try:
            share = float(value or 0.5)
        except ValueError:
            yield problem(
                f"{name} is {value!r}: JAX takes a number there.", export(f"{name}=.75"), needed=True
            )
            continue
        if share <= 0 or (share > 1 and not unified):
            what = f"{name} is {value}: it is the share of a GPU's memory that JAX takes, from 0 to 1."
            yield problem(what, export(f"{name}=.75"))


def _allocator(found: Found) -> Iterator[Problem]:
    value = _variables(found).get("XLA_PYTHON_CLIENT_ALLOCATOR")
    if value is not None and value.lower() not in _ALLOCATORS:
        yield problem(
            f"XLA_PYTHON_CLIENT_ALLOCATOR is {value!r}, which is none of {', '.join(_ALLOCATORS)}: JAX "
            "will not "
            "start the GPU.",
            unset("XLA_PYTHON_CLIENT_ALLOCATOR"),
            needed=True,
        )


def _preallocate(found: Found) -> Iterator[Problem]:
    value = _variables(found).get("XLA_PYTHON_CLIENT_PREALLOCATE", "")
    if value not in _PREALLOCATE:
        yield problem(
            f"XLA_PYTHON_CLIENT_PREALLOCATE is {value!r}, which JAX takes for true: only false, False and "
            "0 turn "
            "it off.",
            export("XLA_PYTHON_CLIENT_PREALLOCATE=false"),
        )


def _not_gpu(found: Found) -> Iterator[Problem]:
    platforms = _platforms(found)
    if found["gpus"] and platforms and not {"cuda", "gpu"} & set(platforms):
        yield problem(
            f"JAX_PLATFORMS is {_variables(found)['JAX_PLATFORMS']}, so JAX does not use the GPU.",
            unset("JAX_PLATFORMS"),
        )


def _no_such_platform(found: Found) -> Iterator[Problem]:
    plugins = [name for name, version in found["versions"].items() if name.startswith("jax-cuda") and version]
    if "cuda" in _platforms(found) and not plugins and found["versions"].get("jax"):
        yield problem(
            "JAX_PLATFORMS asks for cuda, and JAX has no CUDA plugin: it will not start.",
            unset("JAX_PLATFORMS"),
            needed=True,
        )


def _hidden_gpus(found: Found) -> Iterator[Problem]:
    value = _variables(found).get("CUDA_VISIBLE_DEVICES")
    if value is None or not found["gpus"]:
        return
    first = value.split(",")[0].strip()
    if not first or first == "-1" or first == "NoDevFiles":
        what = f"CUDA_VISIBLE_DEVICES is {value!r}, which hides every GPU from JAX."
        yield problem(what, unset("CUDA_VISIBLE_DEVICES"))
    elif first.isdigit() and int(first) >= len(found["gpus"]):
        yield problem(
            f"CUDA_VISIBLE_DEVICES is {value!r}, and there are only {len(found['gpus'])} GPUs, counted "
            "from 0: "
            "CUDA sees none.",
            export("CUDA_VISIBLE_DEVICES=0"),
        )


def _flags_file(found: Found) -> Iterator[Problem]:
    value = _variables(found).get("XLA_FLAGS", "").strip()
    if value and not value.startswith("-") and not Path(value).is_file():
        yield problem(
            f"XLA_FLAGS is {value[:80]!r}, which does not begin with --: XLA takes it for the name of a "
            "file with "
            "flags, finds none, and ends the kernel.",
            export(f"XLA_FLAGS={shlex.quote(f'--{value}')}"),
            needed=True,
        )


def _tensorflow(found: Found) -> Iterator[Problem]:
    if "TF_FORCE_GPU_ALLOW_GROWTH" in _variables(found):
        yield note(
            "memory",
            "TF_FORCE_GPU_ALLOW_GROWTH is TensorFlow's, and JAX does not read it.",
            export("XLA_PYTHON_CLIENT_PREALLOCATE=false", first="JAX's own is another."),
        )


def _hidden_errors(found: Found) -> Iterator[Problem]:
    level = _variables(found).get("TF_CPP_MIN_LOG_LEVEL", "")
    if level.isdigit() and int(level) >= 3:
        yield problem(
            f"TF_CPP_MIN_LOG_LEVEL is {level}, so XLA prints no error: a trace without device rows can't "
            "say why.",
            unset("TF_CPP_MIN_LOG_LEVEL"),
        )


def _slowed(found: Found) -> Iterator[Problem]:
    for name, effect in _SLOWED.items():
        if _variables(found).get(name, "").lower() in _TRUE:
            what = f"{name} is set: {effect}, so times are not those of the program without it."
            yield problem(what, unset(name))


def _proxies(found: Found) -> Iterator[Problem]:
    proxies = found.get("proxies")
    if proxies and proxies["set"] and not proxies["excepts_this_machine"]:
        yield note(
            "programs that ask this Jupyter server",
            f"{' and '.join(proxies['set'])} send their requests through a proxy, those to this machine "
            "too, for NO_PROXY does not except it.",
            export("NO_PROXY=localhost,127.0.0.1,::1"),
        )


CHECKS = (
    Check("two-memory-fractions", "both names of the memory's share set at once", _two_fractions),
    Check("memory-fraction", "a share of the memory that is no share", _fraction),
    Check("allocator", "an allocator that JAX doesn't have", _allocator),
    Check("preallocate", "a word for false that JAX takes for true", _preallocate),
    Check("not-on-gpu", "JAX_PLATFORMS without the GPU that is there", _not_gpu),
    Check("no-such-platform", "JAX_PLATFORMS with a platform that JAX can't start", _no_such_platform),
    Check("hidden-gpus", "CUDA_VISIBLE_DEVICES hides every GPU", _hidden_gpus),
    Check("flags-file", "XLA_FLAGS that XLA takes for a file's name", _flags_file),
    Check("tensorflow-variables", "TensorFlow's variables, which JAX does not read", _tensorflow),
    Check("hidden-errors", "TF_CPP_MIN_LOG_LEVEL hides what explains an empty trace", _hidden_errors),
    Check("slowed-down", "a debugging mode that changes every time", _slowed),
    Check("proxy", "a proxy that requests to this machine go through", _proxies),
)
