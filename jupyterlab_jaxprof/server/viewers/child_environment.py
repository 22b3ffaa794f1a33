"""What a viewer's process gets of the Jupyter server's environment."""

from __future__ import annotations

import os

# What a Python process needs of the environment. The rest stays out of the viewers: it may hold tokens.
ENVIRONMENT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"),
    }
)
ENVIRONMENT_PREFIXES = (
    "LC_",
    "PYTHON",
    "LD_",
    "DYLD_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "MALLOC_",
    "XDG_",
    "NIX_",
)


def viewer_environment() -> dict[str, str]:
    """The environment of a viewer's process: only what Python needs, no secret of the server, no GPU."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ENVIRONMENT or name.startswith(ENVIRONMENT_PREFIXES)
    }
    # A viewer may import TensorFlow, which would take the GPU's memory.
    return {**kept, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONUNBUFFERED": "1"}
