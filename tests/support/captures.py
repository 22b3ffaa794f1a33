"""Real captures of H200s, packed in tests/data: h200 and, of labelled programs, labelled."""

from __future__ import annotations

import lzma
import shutil
import tempfile
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "h200"
TRACES = sorted(path.name.removesuffix(".xplane.pb.xz") for path in DATA.glob("*.xplane.pb.xz"))


def content(file_name: str) -> bytes:
    """What the file `<name>.xplane.pb` or `<name>.sqlite` holds."""
    packed = DATA / f"{file_name}.xz"
    if not packed.is_file():
        packed = DATA.with_name("labelled") / packed.name
    return lzma.decompress(packed.read_bytes())


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="jaxprof-captures-")


@cache
def unpacked(file_name: str) -> Path:
    """The capture as a file, unpacked once a session: `unpacked("healthy.xplane.pb")`. Read it only."""
    path = Path(_directory().name) / file_name
    path.write_bytes(content(file_name))
    path.chmod(0o400)
    return path


def unpacked_to(directory: Path, file_name: str, new_name: str | None = None) -> Path:
    """A copy of the capture in a directory (made where it is missing), for tests that change it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (new_name or file_name)
    shutil.copyfile(unpacked(file_name), path)
    return path
