"""What every kernel of the environment imports: the package, and its magics by the start-up file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.table import Figure, Limit
from bench.turns import in_turns, timed
from tests.support.kernels import STARTUP, kernel_environment

ROUNDS = 11
START_UP_FILE = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
import ipykernel.ipkernel
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
began = time.perf_counter()
shell.safe_execfile(sys.argv[1], shell.user_ns, raise_exceptions=True)
print(time.perf_counter() - began)
assert "jax" not in sys.modules and "numpy" not in sys.modules
"""


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    rounds = ROUNDS * (3 if long else 1)
    with tempfile.TemporaryDirectory() as directory:
        environment = kernel_environment(directory)
        load = [sys.executable, "-c", START_UP_FILE, str(STARTUP)]
        parts = [float(subprocess.check_output(load, env=environment, text=True)) for _ in range(rounds)]
        yield Figure.of_values("our start-up file in a kernel", parts, "s", Limit("value", 0.020))

        def python(statement: str) -> float:
            command = [sys.executable, "-c", statement]
            return timed(lambda: subprocess.run(command, env=environment, check=True))

        # whatever imports the package has imported that long before
        pairs = in_turns(rounds, lambda: python("import jupyterlab_jaxprof"), lambda: python("import typing"))
    name = "import jupyterlab_jaxprof"
    yield Figure.of_pairs(name, pairs[0], "import typing", pairs[1], "s", Limit("above", 0.010))
