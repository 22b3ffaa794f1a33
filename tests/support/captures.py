"""Real captures of H200s, packed in tests/data: h200 and, of labelled programs, labelled."""

from __future__ import annotations

import lzma
import shutil
import tempfile
from functools import cache
from pathlib import Path

from jupyterlab_jaxprof.captures import Record, Status, Store

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


def published(store: Store, capture_name: str, name: str) -> Record:
    """A real trace as a capture of the store, with what is diagnosed of it."""
    from jupyterlab_jaxprof.diagnosis import diagnose
    from jupyterlab_jaxprof.timeline import read

    found = diagnose(read([unpacked(f"{capture_name}.xplane.pb")]))
    with store.begin("trace", name) as draft:
        session = draft.directory / "plugins/profile" / draft.session
        unpacked_to(session, f"{capture_name}.xplane.pb", "vm.xplane.pb")
        data = found.to_json()
        return draft.publish(status=Status.OK, summary=data["summary"], findings=data["findings"])
