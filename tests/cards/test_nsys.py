"""The card of an Nsight report."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import CaptureFile, Record, Status

RECORD = Record(
    id="20261130-141857-123-abcdef",
    kind="nsys",
    name="steady",
    created="2026-11-30T14:18:57+00:00",
    status=Status.OK,
    environment={"nsys": "2025.3.1.90-abc"},
    files=(CaptureFile("a<b.nsys-rep", 6, "nsys"),),
)


@pytest.mark.parametrize("server", ["", "/user/anna/"])
def test_it_says_how_to_open_the_report_and_carries_it_where_no_sidebar_does(tmp_path, monkeypatch, server):
    monkeypatch.setenv("JAXPROF_BASE_URL", server)
    (tmp_path / "a<b.nsys-rep").write_bytes(b"report")
    bundle = cards.bundle(RECORD, directory=tmp_path, in_store=True)
    text, html = bundle["text/plain"], bundle["text/html"]
    assert "nsys-ui (version 2025.3 or newer)" in " ".join(text.split())
    assert ("JaxProf sidebar" in text) == bool(server)
    data = base64.b64encode(b"report").decode()
    link = f'<a download="a&lt;b.nsys-rep" href="data:application/octet-stream;base64,{data}"'
    assert (link in html) == (not server)


def test_nothing_is_carried_that_is_large_or_gone(tmp_path, monkeypatch):
    monkeypatch.delenv("JAXPROF_BASE_URL", raising=False)
    large = replace(RECORD, files=(CaptureFile("a<b.nsys-rep", 10**8, "nsys"),))
    for record in (RECORD, large, replace(RECORD, files=())):
        assert "data:" not in cards.bundle(record, directory=tmp_path, in_store=True)["text/html"]
