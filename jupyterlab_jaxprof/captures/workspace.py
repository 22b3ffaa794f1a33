"""A private directory in the store, for files on their way into a capture."""

from __future__ import annotations

import secrets
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from . import disk
from .owner import take


class Workspace:
    """Made below `partial/`, so that its files move into a capture by a rename, whatever their size.

    `directory` is deleted when it is closed; what a killed process left is deleted by the next `sweep`.
    """

    def __init__(self, partial: Path) -> None:
        self.directory = partial / f"upload-{secrets.token_hex(8)}"
        self.directory.mkdir(disk.DIRECTORY_MODE)
        self._owner: FileIO | None = take(self.directory)
        self.files = self.directory / "files"
        try:
            self.files.mkdir(disk.DIRECTORY_MODE)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Delete it with all in it; nothing happens when that is done already."""
        if self._owner is not None:
            disk.remove_tree(self.directory)
            self._owner.close()
            self._owner = None
