"""Stores to test with: empty, filled, on a disk that can be full or read-only."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Draft, Record, Status, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


NOBODY = 65534


def fill(draft: Draft, size_bytes: int = 1000) -> None:
    """Write what a trace writes."""
    session = draft.directory / "plugins" / "profile" / draft.session
    session.mkdir(parents=True)
    (session / "vm.xplane.pb").write_bytes(b"\x0a" * size_bytes)


def publish(store: Store, name: str = "run", *, size_bytes: int = 1000, **fields: object) -> Record:
    with store.begin("trace", name) as draft:
        fill(draft, size_bytes)
        return draft.publish(**({"status": Status.OK} | fields))


class Disk:
    """A small disk: a tmpfs where the test may mount one, else a directory, a limit on writing, and modes.

    Root without the right to mount (in a container, say) ignores modes, and acts as nobody for the while.
    """

    def __init__(self, size: str = "4m") -> None:
        self.place = Path(tempfile.mkdtemp(prefix="jaxprof-disk-"))
        options = ["-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(self.place)]
        self.mounted = subprocess.run(["mount", *options], capture_output=True).returncode == 0
        self._as_nobody = not self.mounted and os.geteuid() == 0
        if self._as_nobody:
            os.chown(self.place, NOBODY, NOBODY)
            os.seteuid(NOBODY)

    def exhaust(self) -> None:
        if not self.mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            return
        with (self.place / "ballast").open("wb", buffering=0) as file:
            for size_bytes in (1 << 20, 4096, 1):
                while self._fits(file, size_bytes):
                    pass

    @staticmethod
    def _fits(file: RawIOBase, size_bytes: int) -> bool:
        try:
            file.write(b"x" * size_bytes)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                return False
            raise
        return True

    def relieve(self) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        (self.place / "ballast").unlink(missing_ok=True)

    def protect(self, *, writable: bool) -> None:
        """Make the disk read-only, or writable again."""
        if self.mounted:
            mode = "rw" if writable else "ro"
            subprocess.run(["mount", "-o", f"remount,{mode}", str(self.place)], check=True)
            return
        for place, _, _ in os.walk(self.place):
            Path(place).chmod(0o700 if writable else 0o500)

    def close(self) -> None:
        if self.mounted:  # at once, read-only and in use too: a test that fails must leave nothing mounted
            subprocess.run(["umount", "--lazy", str(self.place)], check=True)
        else:
            self.protect(writable=True)
            self.relieve()
        if self._as_nobody:
            os.seteuid(0)
        shutil.rmtree(self.place)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.close()


def assert_sentence(text: str | None, *parts: str) -> None:
    assert text is not None
    assert text[0].isupper()
    assert text.endswith(".")
    assert "Traceback" not in text
    for part in parts:
        assert part in text, text
