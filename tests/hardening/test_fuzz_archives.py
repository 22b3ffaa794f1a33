"""Archives with anything in them, and names of captures and files: imported, or refused in a sentence."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from jupyterlab_jaxprof.captures import InvalidValue, Status, Store, StoreError, session_slug
from jupyterlab_jaxprof.captures.names import SESSION_PATTERN, checked_name, checked_notes, cleaned_name
from jupyterlab_jaxprof.captures.record import is_relative_path
from jupyterlab_jaxprof.reports import ReportError, import_path
from jupyterlab_jaxprof.server.archive import zip_chunks
from jupyterlab_jaxprof.server.downloads import archive_contents, content_disposition
from tests.cards.test_cards import ID, record
from tests.support import xspace
from tests.support.fuzz_checks import assert_sentence
from tests.support.fuzzing import fuzzed
from tests.support.odd_values import byte_changes, changed_json, mutated, odd_change, odd_text, pool


def _trace() -> bytes:
    device = xspace.Plane("/device:GPU:0")
    return xspace.space(device.line("Stream #7(Compute)", 0, [device.event("k", 0, 1000)]))


TRACE = _trace()
_NAMES = (
    f"{ID}/capture.json", f"{ID}/plugins/profile/x/vm.xplane.pb", "plugins/profile/s/vm.xplane.pb",
    "vm.xplane.pb", "r.sqlite", "r.nsys-rep", "../x", "/etc/x", "a", "a/b", "a/", "C:x", "a\\..\\x",
    "n" * 300, "x/" * 200 + "y", f"{ID}/.jaxprof-owner", f"{ID}/progress.json", "__MACOSX/x", ".DS_Store",
)  # fmt: skip
_METHODS = (
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
    zipfile.ZIP_DEFLATED,
    zipfile.ZIP_BZIP2,
    zipfile.ZIP_LZMA,
)


@dataclass(frozen=True)
class Part:
    """One entry of an archive."""

    name: str
    method: int
    content: bytes
    mode: int


def _record_of(chance: Random) -> bytes:
    files = [{"path": "plugins/profile/x/vm.xplane.pb", "size_bytes": len(TRACE), "role": "xplane"}]
    data = record(files=(), xprof_run=f"{ID}/x").to_json() | {"files": files}
    if chance.random() < 0.4:
        files.append({"path": odd_text(chance), "size_bytes": chance.choice([0, 3]), "role": "other"})
    for _ in range(chance.randrange(3)):
        changed_json(data, odd_change(chance))
    return json.dumps(data).encode()


def _part(chance: Random) -> Part:
    name = chance.choice(_NAMES) if chance.random() < 0.8 else odd_text(chance)
    name = name.encode("utf-8", "replace").decode() or "x"
    text = _record_of(chance) if name.endswith("capture.json") else TRACE
    body = chance.choice([text, text, text, b"", b"abc", b"PK\x03\x04", b"SQLite format 3\0", bytes(50_000)])
    return Part(name, chance.choice(_METHODS), body, chance.choice([0o100644] * 8 + [0o120777, 0o10644]))


def _archive(parts: list[Part], damage: list[tuple[int, int, bytes]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part in parts:
            info = zipfile.ZipInfo(part.name)
            info.compress_type, info.external_attr, info.create_system = part.method, part.mode << 16, 3
            archive.writestr(info, part.content)
    return mutated(out.getvalue(), damage)


def _capture(chance: Random) -> list[Part]:
    """Make the archive of a capture, as it downloads."""
    kind = chance.choice(_METHODS)
    return [
        Part(_NAMES[0], kind, _record_of(chance), 0o100644),
        Part(_NAMES[1], kind, TRACE, 0o100644),
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("fuzz")
    yield place
    shutil.rmtree(place)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of zipfile, where a test writes a name twice
@fuzzed(
    80,
    parts=st.one_of(pool(_capture, 2000), st.lists(pool(_part), max_size=4)),
    damage=st.one_of(st.just([]), byte_changes(4)),
)
def test_any_archive_is_imported_whole_or_not_at_all(place: Path, parts: list[Part], damage: Any) -> None:
    store = Store(place / "store")
    path = place / "given.zip"
    path.write_bytes(_archive(parts, damage))
    problem, imported = "", None
    try:
        imported = import_path(store, path)
    except (ReportError, StoreError, InvalidValue) as error:
        problem = str(error)
    assert sorted(entry.name for entry in place.iterdir()) in (["given.zip", "store"], ["given.zip"])
    if imported is None:
        assert_sentence(problem)
        assert not store.list().rows
    else:
        row = store.list().rows[0]
        assert (row.record, row.problem) == (imported, None)
        for file in imported.files:
            store.open(imported.id, file.path).close()
        store.delete(imported.id)
    with suppress(FileNotFoundError):
        assert list((store.root / "partial").iterdir()) == []


_ODD_NAMES = pool(odd_text, 4000)


@fuzzed(40, name=_ODD_NAMES, files=st.lists(_ODD_NAMES, max_size=3, unique=True), notes=_ODD_NAMES)
def test_a_capture_of_any_names_goes_through_its_archive(
    place: Path, name: str, files: list[str], notes: str
) -> None:
    names = [file for file in files if is_relative_path(file) and _can_be_made(file)]
    store, other = Store(place / "one"), Store(place / "other")
    with store.begin("time", cleaned_name(name)) as draft:
        for file in names:
            target = draft.directory / "files" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"x" + os.fsencode(file))
        published = draft.publish(status=Status.OK, cell=name, magic=notes, reason=notes)
    with suppress(InvalidValue):
        published = store.update(published.id, notes=checked_notes(notes))
    path = place / "made.zip"
    path.write_bytes(b"".join(zip_chunks(archive_contents(store, published.id)[1], published.id)))
    try:
        if not any("\\" in file for file in names):
            assert import_path(other, path) == published == other.get(published.id)
            other.delete(published.id)
    finally:
        store.delete(published.id)
        path.unlink()


def _can_be_made(name: str) -> bool:
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return False
    return all(len(part) < 256 for part in encoded.split(b"/"))


@fuzzed(400, name=st.one_of(_ODD_NAMES, st.text(max_size=300)))
def test_any_name_is_kept_cleaned_or_refused_in_a_sentence(name: str) -> None:
    assert SESSION_PATTERN.fullmatch(session_slug(name))
    assert len(session_slug(name)) <= 64
    cleaned = cleaned_name(name)
    assert checked_name(cleaned)
    problem, kept = "", ""
    try:
        kept = checked_name(name)
    except InvalidValue as error:
        problem = str(error)
    if problem:
        assert_sentence(problem)
    else:
        assert checked_name(kept) == kept
    header = content_disposition(name.encode("utf-8", "replace").decode())
    header.encode("latin-1")
    assert re.fullmatch(r"attachment; filename=\"[ -~]*\"; filename\*=UTF-8''[\w.~%-]*", header, re.ASCII)
