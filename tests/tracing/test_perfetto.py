from __future__ import annotations

import gzip
import json

import pytest

from jupyterlab_jaxprof.tracing.perfetto import write_perfetto

from .test_profiler import silent, work


def test_perfetto_gets_no_empty_event_and_no_metadata(new_profiler, tmp_path):
    profiler = new_profiler()
    profiler.start()
    work()
    profiler.stop(tmp_path / "trash", silent)
    (source,) = profiler.directory.rglob("*.trace.json.gz")
    theirs = json.loads(gzip.decompress(source.read_bytes()))
    assert theirs["traceEvents"][-1] == {}, "if JAX has mended this, write_perfetto can become simpler"

    count = write_perfetto(source, tmp_path / "perfetto.json.gz")

    ours = json.loads(gzip.decompress((tmp_path / "perfetto.json.gz").read_bytes()))
    assert ours["traceEvents"] == theirs["traceEvents"][:-1]
    assert len(ours["traceEvents"]) == count
    assert "metadata" not in ours


@pytest.mark.parametrize("content", [b"", b"{}", b'{"traceEvents": 1}', b"[]", b'{"traceEvents": ['])
def test_what_is_no_trace_is_refused(tmp_path, content):
    source = tmp_path / "vm.trace.json.gz"
    source.write_bytes(gzip.compress(content))
    with pytest.raises(ValueError):
        write_perfetto(source, tmp_path / "perfetto.json.gz")


def test_a_cut_off_file_is_refused(tmp_path):
    source = tmp_path / "vm.trace.json.gz"
    source.write_bytes(gzip.compress(b'{"traceEvents": []}')[:-6])
    with pytest.raises(ValueError, match="cut off"):
        write_perfetto(source, tmp_path / "perfetto.json.gz")
