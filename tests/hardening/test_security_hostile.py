"""A capture, an archive or a name that somebody else has made: nothing outside is touched or commanded."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Status, Store, StoreError
from jupyterlab_jaxprof.captures.record import RecordError
from jupyterlab_jaxprof.cli import main
from jupyterlab_jaxprof.reports.archives import unpack
from jupyterlab_jaxprof.reports.find import ReportError
from jupyterlab_jaxprof.server.downloads import archive_contents, content_disposition
from tests.support.endurance import tries

ID = "20260101-000000-000-abcdef"
#: Clears the screen, sets the title, turns the direction, ends a line; ESC, CSI in one byte, a bell.
ESCAPES = "a\x1b[2J\x1b]0;owned\x07b\x9b31mc\u202edcba\r\nfake line\x08\x7f"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def capture_json(**changes: Any) -> dict[str, Any]:
    return {
        "schema": 1, "id": ID, "kind": "trace", "name": "x", "status": "ok",
        "created": "2026-01-01T00:00:00Z",
        "files": [{"path": "x.xplane.pb", "size_bytes": 1, "role": "xplane"}],
    } | changes  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with one capture, as somebody else has put it there; and what lies outside of it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("precious")
    Store(tmp_path / "store").prepare()
    (tmp_path / "store" / "captures" / ID).mkdir()
    return tmp_path


def put(place: Path, record: Any) -> Path:
    directory = place / "store" / "captures" / ID
    content = record if isinstance(record, str) else json.dumps(record)
    (directory / "capture.json").write_text(content)
    return directory


FILES = [
    "../../../outside/precious", "/etc/passwd", "a/../../x", "./x", "a//b", "x\0y", "..", "",
    "capture.json/../x",
]  # fmt: skip


@pytest.mark.parametrize("path", FILES)
def test_files_that_lead_elsewhere_are_none(place: Path, path: str) -> None:
    put(place, capture_json(files=[{"path": path, "size_bytes": 1, "role": "xplane"}]))
    store = Store(place / "store")
    (row,) = store.list().rows
    assert row.problem
    for act in (store.get, lambda one: store.open(one, path), lambda one: archive_contents(store, one)):
        with pytest.raises((StoreError, RecordError)):
            act(ID)


@pytest.mark.parametrize(
    "changes",
    [
        {"files": [{"path": "x", "size_bytes": 10**30, "role": "other"}]},
        {"files": [{"path": "x", "size_bytes": -1, "role": "other"}]},
        {"files": [{"path": f"f{n}", "size_bytes": 2**63 - 1, "role": "other"} for n in range(1000)]},
        {"schema": 10**400},
        {"summary": {"wall_ms": 1e308, "headline": {"label": "x", "value": 1e308, "unit": "ms"}}},
        {"environment": {"devices": "x" * 1_000_000}, "notices": ["y" * 1_000_000]},
        {"name": "n" * 1_000_000, "notebook": "b" * 1_000_000},
    ],
)
def test_numbers_and_texts_without_measure_are_borne(place: Path, changes: dict[str, Any]) -> None:
    put(place, capture_json(**changes))
    store = Store(place / "store")
    page = json.loads(json.dumps(store.list().to_json(), allow_nan=False))
    assert page["total"] == 1
    try:
        record = store.get(ID)
    except (StoreError, RecordError) as error:
        sentence = str(error)
    else:
        sentence = ""
        bundle = cards.bundle(record, directory=store.directory(ID), in_store=True)
        assert len(bundle["text/plain"]) + len(bundle["text/html"]) < 200_000
    assert len(sentence) < 2000
    store.delete(ID)
    assert store.list().total == 0


def test_deleting_follows_no_link_and_waits_for_no_pipe(place: Path) -> None:
    directory = put(place, capture_json())
    (directory / "folder").symlink_to(place / "outside")
    (directory / "file").symlink_to(place / "outside" / "precious")
    os.link(place / "outside" / "precious", directory / "hard")
    os.mkfifo(directory / "pipe")
    if os.geteuid() == 0:
        os.mknod(directory / "device", stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero: without an end
    store = Store(place / "store")
    for name in ("folder/precious", "file", "pipe", "device"):
        put(place, capture_json(files=[{"path": name, "size_bytes": 8, "role": "other"}]))
        with pytest.raises(StoreError):
            store.open(ID, name)
    assert store.disk_bytes(ID) < 10_000
    store.delete(ID)
    assert (place / "outside" / "precious").read_text() == "precious"
    assert (place / "outside" / "precious").stat().st_nlink == 1
    assert not list((place / "store" / "partial").iterdir())


def test_a_capture_of_thousands_of_directories_in_each_other_can_be_deleted(place: Path) -> None:
    directory = put(place, capture_json())
    inner = os.open(directory, os.O_RDONLY)
    for _ in range(3000):  # deeper than Python's stack, and longer than a path may be
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    store = Store(place / "store")
    assert store.list().total == 1
    store.delete(ID)
    assert store.list().total == 0
    assert not list((place / "store" / "partial").iterdir())


def test_a_capture_that_is_a_link_is_none(place: Path) -> None:
    directory = place / "store" / "captures" / ID
    directory.rmdir()
    (place / "outside" / "capture.json").write_text(json.dumps(capture_json()))
    directory.symlink_to(place / "outside")
    store = Store(place / "store")
    with pytest.raises(StoreError):
        store.open(ID, "precious")
    with pytest.raises((StoreError, RecordError)):
        store.update(ID, name="other")
    assert json.loads((place / "outside" / "capture.json").read_text())["name"] == "x"
    with contextlib.suppress(StoreError):
        store.delete(ID)
    assert (place / "outside" / "precious").exists()


# Archives


def entry(name: str, mode: int = 0, content: bytes = b"x") -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info, content


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("../evil", 0), ("/evil", 0), ("a/../../evil", 0), ("..\\evil", 0), ("C:\\evil", 0), ("C:/evil", 0),
        ("a/./evil", 0), ("link", stat.S_IFLNK | 0o777), ("device", stat.S_IFCHR | 0o666),
        ("pipe", stat.S_IFIFO | 0o666), ("a//evil", 0), ("\\\\host\\share\\evil", 0), ("ok/" * 600 + "x", 0),
        ("capture.json/x", 0),
    ],
)  # fmt: skip
def test_archives_stay_in_their_directory(tmp_path: Path, name: str, mode: int) -> None:
    path, target = tmp_path / "a.zip", tmp_path / "to"
    target.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(*entry("capture.json"))
        archive.writestr(*entry(name, mode))
    with pytest.raises(ReportError):
        unpack(path, target)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.zip", "to"]
    assert not [one for one in target.rglob("*") if one.is_symlink() or not (one.is_file() or one.is_dir())]


def test_archives_do_not_grow_without_measure(tmp_path: Path) -> None:
    """A bomb that tells its size, one that lies, and one of many files."""
    target = tmp_path / "to"
    target.mkdir()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", bytes(tries(30_000_000, 300_000_000)))
    whole = stream.getvalue()
    size = tries(30_000_000, 300_000_000).to_bytes(4, "little")
    (tmp_path / "lies.zip").write_bytes(whole.replace(size, (1000).to_bytes(4, "little")))
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(10_001):
            archive.writestr(str(number), b"")
    for name in ("lies.zip", "many.zip"):
        with pytest.raises(ReportError):
            unpack(tmp_path / name, target)
    assert sum(one.stat().st_size for one in target.rglob("*")) < 1_000_000


# Names


def hostile(place: Path) -> None:
    """A capture all of whose texts have escape codes, and findings and steps called so."""
    device = {"id": 0, "platform": ESCAPES, "kind": ESCAPES, "process_index": 0}
    put(
        place,
        capture_json(
            name=ESCAPES, notebook=ESCAPES, magic=ESCAPES, cell=ESCAPES, notes=ESCAPES, reason=ESCAPES,
            status="failed", notices=[ESCAPES], environment={"host": ESCAPES, "devices": [device]},
            files=[{"path": ESCAPES, "size_bytes": 1, "role": ESCAPES}],
            findings=[
                {
                    "id": "nothing-wrong", "title": ESCAPES, "level": "note", "lost_ms": 1.0, "share": 0.1,
                    "evidence": [ESCAPES], "ranges": [{"start_ms": 0, "end_ms": 1, "label": ESCAPES}],
                    "meaning": ESCAPES, "next": [ESCAPES], "doc": ESCAPES,
                }
            ],
            summary={"headline": {"label": ESCAPES, "value": 1.0, "unit": "ms"}, "sentence": ESCAPES},
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [["list"], ["list", "--json"], ["report", ID], ["report", ID, "--json"], ["report", ESCAPES[:20]],
     ["compare", ID, "no\x1b[2Jbody"], ["import", "/no\x9b2J"], ["explain", "\x1b[2J"], ["\x1b[2J"]],
)  # fmt: skip
def test_no_name_commands_the_terminal(
    place: Path, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile(place)
    monkeypatch.setenv("JAXPROF_DIR", str(place / "store"))
    with contextlib.suppress(SystemExit):
        main(words)
    said = "".join(capsys.readouterr())
    assert said.strip()
    assert COMMANDS.search(said) is None, said[:2000]
    assert "Traceback" not in said


def test_no_name_commands_a_card(place: Path) -> None:
    hostile(place)
    (row,) = Store(place / "store").list().rows
    assert row.record is not None
    bundle = cards.bundle(row.record, directory=place, in_store=True)
    for shown in (bundle["text/plain"], bundle["text/html"]):
        assert COMMANDS.search(shown) is None
        assert "owned" in shown


def test_downloads_have_one_name_that_is_one(place: Path) -> None:
    for name in (ESCAPES, 'a"; filename="evil.exe', "../../x", "a\r\nSet-Cookie: x=1", "ü\\x", "%0d%0aX: y"):
        header = content_disposition(name)
        assert re.fullmatch(r'attachment; filename="[ -~]*"; filename\*=UTF-8\'\'[\w.~%!-]*', header), header
        assert header.count('"') == 2
        assert "/" not in header.partition("filename*=UTF-8''")[2]


def test_a_capture_is_named_by_no_path(tmp_path: Path) -> None:
    refused: list[str] = []
    for name in ("../../x", "-rf", "--output=/tmp/x", "$HOME `id` $(id)", "a;b|c&d", "x\u202ey", "\x1b[2J"):
        try:
            with Store(tmp_path).begin("trace", name) as draft:
                assert re.fullmatch("[A-Za-z0-9_][A-Za-z0-9._-]*", draft.session), draft.session
                record = draft.publish(status=Status.OK)
        except StoreError:
            refused.append(name)
        else:
            assert (tmp_path / "captures" / record.id).is_dir()
    assert refused == ["x\u202ey", "\x1b[2J"]
