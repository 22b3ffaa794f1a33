"""Imports over REST: uploads piece by piece, files of the file browser, and what is refused."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof.captures import Store
from tests.server.conftest import Publish
from tests.support.captures import content
from tests.support.growth import Growth
from tests.support.servers import Server

API = "jaxprof/api/"


def ended(server: Server, one: dict[str, Any]) -> dict[str, Any]:
    """Wait until an import has ended."""
    deadline = time.monotonic() + 120
    while one["state"] in ("uploading", "reading"):
        assert time.monotonic() < deadline, one
        time.sleep(0.1)
        one = server.get_json(f"{API}imports/{one['id']}")
    return one


def upload(server: Server, files: dict[str, bytes], piece: int = 400_000) -> dict[str, Any]:
    """Send files as the browser does, and give the import at its end."""
    listed = [{"path": path, "size_bytes": len(data), "modified_s": 0} for path, data in files.items()]
    begun = server.request("POST", f"{API}imports", json={"files": listed})
    assert begun.status_code == 201, begun.text
    one = begun.json()
    for number, data in enumerate(files.values()):
        for offset in range(0, len(data), piece):
            address = f"{API}imports/{one['id']}/{number}?offset={offset}"
            sent = server.request("PUT", address, data=data[offset : offset + piece])
            assert sent.json() == {"received": min(offset + piece, len(data))}
    return ended(server, server.request("POST", f"{API}imports/{one['id']}").json())


def leftovers(server: Server) -> list[Path]:
    return list((server.store / "partial").glob("upload-*"))


def test_an_uploaded_trace_becomes_a_capture_with_findings_once(server: Server) -> None:
    trace = content("small_ops.xplane.pb")
    one = upload(server, {"small_ops.xplane.pb": trace})
    assert one["state"] == "done", one
    capture = server.get_json(f"{API}captures/{one['capture']}")
    assert (capture["name"], capture["kind"], capture["status"]) == ("small_ops", "trace", "ok")
    assert capture["findings"]
    assert capture["xprof_run"] == f"{one['capture']}/small_ops"
    assert server.get(f"{API}captures/{one['capture']}/files/{capture['files'][0]['path']}").content == trace
    again = upload(server, {"other.xplane.pb": trace})
    assert (again["state"], again["existing"]) == ("failed", one["capture"])
    assert again["message"].startswith(
        "The store has other.xplane.pb already: it is in the capture 'small_ops'"
    )
    assert not leftovers(server)


def test_an_archive_comes_back_as_the_capture_it_was(server: Server, publish: Publish) -> None:
    record = publish("there and back", {"plugins/profile/s/a.xplane.pb": content("tiny_scan.xplane.pb")})
    archive = server.get(f"{API}captures/{record.id}/archive").content
    server.request("DELETE", f"{API}captures/{record.id}")
    one = upload(server, {"there and back.zip": archive})
    assert (one["state"], one["capture"]) == ("done", record.id), one
    assert Store(server.store).get(record.id) == record


def test_pieces_do_not_stay_in_the_servers_memory(server: Server) -> None:
    """In flat memory, whatever the file's size: Python may look for garbage late."""
    piece, pieces = bytes(4 << 20), 40
    listed = [{"path": "big.nsys-rep", "size_bytes": len(piece) * pieces}]
    address = f"{API}imports/{server.request('POST', f'{API}imports', json={'files': listed}).json()['id']}"
    growth = Growth(server.pid)
    growth.look()
    for number in range(pieces):
        server.request("PUT", f"{address}/0?offset={number * len(piece)}", data=piece).raise_for_status()
        growth.look()
    server.request("DELETE", address)
    assert max(growth.memory_bytes) - growth.memory_bytes[0] < 48e6, growth


def packed(**names: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in names.items():
            archive.writestr(name, data)
    return file.getvalue()


BAD = {
    "no trace": ({"a.xplane.pb": b"no trace at all"}, "a.xplane.pb"),
    "cut zip": ({"a.zip": packed(**{"x/capture.json": b"{}" * 99})[:-30]}, "no whole zip archive"),
    "bomb": ({"a.zip": packed(x=bytes(150_000_000))}, "would grow from 0.1 to 150 MB"),
    "path": ({"a.zip": packed(**{"../../evil": b"x"})}, "would not stay in its directory"),
    "record": ({"d/capture.json": b"[]", "d/a.xplane.pb": b"x"}, "holds no JSON object"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_capture_is_refused_in_a_sentence(server: Server, case: str) -> None:
    files, reason = BAD[case]
    before = server.get_json(f"{API}captures")["total"]
    one = upload(server, files, piece=8 << 20)
    assert one["state"] == "failed"
    assert reason in one["message"]
    assert "upload-" not in one["message"]  # no path that the user never saw
    assert server.get_json(f"{API}captures")["total"] == before
    assert not leftovers(server)


def test_files_of_the_file_browser_are_read_where_they_lie(server: Server) -> None:
    folder = server.home / "work" / "runs" / "plugins" / "profile" / "monday"
    folder.mkdir(parents=True)
    for rank in (0, 1):
        (folder / f"host{rank}.xplane.pb").write_bytes(content(f"two_hosts_r{rank}.xplane.pb"))
    begun = server.request("POST", f"{API}imports", json={"path": "runs"}).json()
    capture = server.get_json(f"{API}captures/{ended(server, begun)['capture']}")
    assert (capture["name"], len(capture["files"])) == ("monday", 2)
    assert len(list(folder.iterdir())) == 2  # copied, not taken away


def test_a_report_that_only_another_nsys_opens_is_kept_with_the_reason(server: Server) -> None:
    report = Path(__file__).parents[1] / "data/h200/nsys_gpu_bound.nsys-rep"
    capture = server.get_json(
        f"{API}captures/{upload(server, {report.name: report.read_bytes()})['capture']}"
    )
    assert (capture["kind"], capture["status"]) == ("nsys", "partial")
    assert capture["reason"].startswith(
        "The report is kept, but could not be read here. nsys_gpu_bound.nsys-rep"
    )


@pytest.mark.parametrize("path", ["../store", "absent.xplane.pb", ".secret"])
def test_nothing_outside_of_what_the_user_may_read_is_imported(server: Server, path: str) -> None:
    (server.home / "work" / ".secret").write_bytes(b"x")
    answer = server.request("POST", f"{API}imports", json={"path": path})
    assert answer.status_code == 404, answer.text


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "/etc/passwd", "size_bytes": 1},
        {"path": "a/../../b", "size_bytes": 1},
        {"path": "a", "size_bytes": -1},
        {"path": "a", "size_bytes": 1 << 49},
    ],
)
def test_an_upload_that_can_not_be_is_refused_before_it_is_sent(
    server: Server, entry: dict[str, Any]
) -> None:
    answer = server.request("POST", f"{API}imports", json={"files": [entry]})
    assert answer.status_code in (400, 507)
    assert answer.json()["message"].endswith(".")


def test_a_cancelled_upload_leaves_nothing(server: Server) -> None:
    listed = [{"path": "a.xplane.pb", "size_bytes": 10, "modified_s": 0}]
    one = server.request("POST", f"{API}imports", json={"files": listed}).json()
    server.request("PUT", f"{API}imports/{one['id']}/0?offset=0", data=b"12345")
    early = server.request("PUT", f"{API}imports/{one['id']}/0?offset=7", data=b"123")
    assert early.status_code == 409
    assert server.request("POST", f"{API}imports/{one['id']}").json() == {
        "message": "a.xplane.pb has not arrived whole."
    }
    assert leftovers(server)
    assert server.get(f"{API}imports/{one['id']}/0").status_code == 405
    assert server.request("DELETE", f"{API}imports/{one['id']}").status_code == 204
    assert not leftovers(server)
    assert server.get(f"{API}imports/{one['id']}").status_code == 404


def test_what_a_killed_process_left_runs_no_more(server: Server) -> None:
    """A row of what runs is only shown for as long as somebody holds its draft."""
    store = Store(server.store)
    with store.begin("trace", "held") as draft:
        about = {"kind": "trace", "name": "held", "magic": "%%jaxtrace", "notebook": "", "cell_id": ""}
        about |= {"kernel_id": "", "interruptible": True, "host": "elsewhere", "pid": 1, "since": 0}
        (draft.directory / "progress.json").write_text(
            json.dumps(about | {"phase": "Running", "fraction": None})
        )
        assert [one.id for one in store.running()] == [draft.id]
        rows = server.get_json(f"{API}running")["running"]
        assert [(row["id"], row["phase"], row["kernel_id"]) for row in rows] == [(draft.id, "Running", "")]
        owner, draft._owner = draft._owner, None
        assert owner is not None
        owner.close()  # as the system does when it ends
        assert server.get_json(f"{API}running")["running"] == []
        draft._owner = owner
