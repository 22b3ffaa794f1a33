"""What the front end has in common with the rest: how numbers are written, and the packages of JupyterLab."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.cards import units
from tests.support.servers import ROOT

MILLISECONDS = """
    0 -0.0 1e-6 0.00085 0.000125 0.48 0.9994 0.9995 0.99951 1 9.994 9.995 9.996 12.25 12.35 -12.345 99.94
    99.95 100.5 101.5 999.4 999.5 999.6 1000 1001 9999 59700 59940 59950 59960 60000 60499 60500 61500 62500
    3599400 3599500 3600000 3629999 3630000 7500000 172740000 172770000 172800000 176400000 1e9 1e12
"""
BYTES = "0 1 999 999.5 1000 1005 1015 9995 12250 999499 999500 999999 1e6 2147483648 1e15 1e19"
PERCENTS = "0 0.001 0.01 0.0125 0.125 0.35 5 9.95 9.96 12.5 13.5 92 99 99.01 99.96 99.999 100 140.5"
COUNTS = "0 1 -3 0.5 2.345 12.25 999 999.4 999.5 1000 1234.5 1e6 1e-3"


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def written(calls: list[list[Any]]) -> list[str]:
    """What the front end writes for these calls, with spaces that may break."""
    done = subprocess.run(
        ["node", Path(__file__).with_name("format.mjs")],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [text.replace("\u00a0", " ") for text in json.loads(done.stdout)]


def test_numbers_read_as_on_cards() -> None:
    some = random.Random(1)
    times = [some.choice([1, 2.5, 5]) * 10 ** some.uniform(-6, 8) for _ in range(300)]
    ties = [some.randrange(1, 8000) / 8 for _ in range(300)]
    values = {
        "ms": [*numbers(MILLISECONDS), *times, *ties, None],
        "us": [None, 1500, 999.5, 12.25],
        "ns": [850, 1e9, 12.5],
        "s": [59.7, 59.96, 1e-4],
        "bytes": [*numbers(BYTES), *(int(tie * 1000) for tie in ties), None],
        "percent": [*numbers(PERCENTS), *(tie / 8 for tie in ties), None],
        "GB/s": [*numbers(COUNTS), *ties, None, 999_999_999, 1e9, 3.825e12, 1e300],
        "": [*numbers(COUNTS), 9e17, 1e18, 1e300],
    }
    table = [(value, unit) for unit, column in values.items() for value in column]
    ours = written([["formatQuantity", value, unit] for value, unit in table])
    cards = [units.quantity(value, unit) for value, unit in table]
    assert [row for row in zip(table, ours, cards, strict=True) if row[1] != row[2]] == []
    assert "999 ms" in ours
    assert "1 min" in ours


def test_every_jupyterlab_of_version_4_will_do() -> None:
    """The builder asks for its own JupyterLab's versions of all that the package doesn't name ranges for."""
    package = json.loads((ROOT / "package.json").read_text())
    ranges = {name: each["requiredVersion"] for name, each in package["jupyterlab"]["sharedPackages"].items()}
    used = {name: each for name, each in package["dependencies"].items() if name.startswith("@jupyterlab/")}
    assert used
    assert used.items() <= ranges.items()
    assert used["@jupyterlab/application"] == "^4.0.0"
