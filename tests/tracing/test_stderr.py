"""What C++ writes to file descriptor 2; a text with the line of a driver that refuses stands in for a GPU."""

from __future__ import annotations

import os

import pytest

from jupyterlab_jaxprof.tracing.stderr import WatchedStderr

REFUSED = (
    b"E0000 cupti_tracer.cc:1205] function cupti_interface_->Subscribe( &subscriber_, ApiCallback, this) "
    b"failed with error CUPTI_ERROR_INSUFFICIENT_PRIVILEGES\nanother line\n"
)


def test_lines_are_passed_on_unchanged_and_explained(capfd):
    with WatchedStderr() as watched:
        os.write(2, REFUSED)
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == REFUSED.decode()
    (notice,) = watched.notices
    assert "NVreg_RestrictProfilingToAdminUsers=0" in notice
    assert "SYS_ADMIN" in notice


def test_nothing_is_said_about_other_lines(capfd):
    with WatchedStderr() as watched:
        os.write(2, b"W0000 some warning\n")
    assert capfd.readouterr().err == "W0000 some warning\n"
    assert watched.notices == []


def test_an_error_within_restores_the_descriptor(capfd):
    def write_and_fail():
        with WatchedStderr():
            os.write(2, b"before\n")
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"


def test_another_subscriber():
    with WatchedStderr() as watched:
        os.write(2, b"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED\n" * 2)
    assert len(watched.notices) == 1
    assert "nsys" in watched.notices[0]
