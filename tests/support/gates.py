"""Asking a viewer's gate without a server."""

from __future__ import annotations

from jupyterlab_jaxprof.server.viewers import bundle

P = "/data/plugin/profile"


def sentence(answer, status):
    assert answer.status_code == status, answer.get_data()[:300]
    assert answer.content_type.startswith("application/json")
    return answer.json["message"]


def body(answer) -> bytes:
    return bundle.decoded(answer.get_data(), answer.headers.get("Content-Encoding", ""))
