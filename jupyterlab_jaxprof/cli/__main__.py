"""`python -m jupyterlab_jaxprof.cli`: `jaxprof`, where that is not on the PATH."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
