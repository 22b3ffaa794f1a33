"""What is amiss with the store: its limit, its disk, whose it is, and the time of its captures."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from jupyterlab_jaxprof.captures import Page, Store
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cards.sheet import Fact
from jupyterlab_jaxprof.environment import Check, Problem, Remedy, export, problem, run

_FREE_NEEDED_BYTES = 10**9
_FREE_NEEDED_INODES = 1000
#: Clocks of the machines that share a store differ by so much.
_CLOCK_SLACK_S = 120.0
_ELSEWHERE = "JAXPROF_DIR=$HOME/jaxprof"

CHECKS = (
    Check("store", "a store that can't be read or written", lambda found: ()),
    Check("store-limit", "a store over its limit, or a limit that is no size", lambda found: ()),
    Check("store-owner", "a store that is another user's, or that others may read", lambda found: ()),
    Check("store-disk", "a disk that is nearly full, or out of inodes", lambda found: ()),
    Check("store-clock", "captures from the future: a clock that was set back", lambda found: ()),
)


def store_facts(store: Store) -> list[Fact]:
    """Tell where the store is, how full, and what is amiss with it."""
    page: Page = store.list(limit=0)
    limit = page.size_limit_bytes
    size = units.size(page.size_bytes) + (f" of {units.size(limit)}" if limit else ", no limit is set")
    set_by = "JAXPROF_DIR" if os.environ.get("JAXPROF_DIR", "").strip() else "Jupyter's data directory"
    return [
        Fact("path", f"{store.root} ({set_by})"),
        Fact("captures", f"{page.total:,}"),
        Fact("size", size),
    ]


def store_problems(store: Store) -> list[Problem]:
    """Look at the store and the disk that it is on."""
    page: Page = store.list(limit=1)
    looked = (_problems(store, page), _limit(page), _owner(store.root), _disk(store.root), _future(page))
    return [one for found in looked for one in found]


def _problems(store: Store, page: Page) -> Iterator[Problem]:
    for what in page.problems:
        if what == store.limit_problem:
            yield {"check": "store-limit", **problem(what, export("JAXPROF_SIZE_LIMIT='20 GB'"))}
        else:
            remedy = export(_ELSEWHERE, first="Mend it, or take another place.")
            yield {"check": "store", **problem(what, remedy, needed=True)}


def _limit(page: Page) -> Iterator[Problem]:
    if page.over_limit.bytes:
        number = len(page.over_limit.ids)
        oldest = f"{units.count(number)} oldest captures" if number > 1 else "oldest capture"
        remedy = Remedy(
            f"Nothing is deleted by itself: delete the {oldest} in the sidebar, pin what you want "
            "to keep, or raise JAXPROF_SIZE_LIMIT."
        )
        what = f"The store is {units.size(page.over_limit.bytes)} over its limit."
        yield {"check": "store-limit", **problem(what, remedy)}


def _owner(root: Path) -> Iterator[Problem]:
    try:
        status = root.stat()
    except OSError:  # there is none yet, or `store` has said so
        return
    if os.geteuid() not in (0, status.st_uid):
        what = f"The store {root} belongs to another user (uid {status.st_uid})."
        yield {"check": "store-owner", **problem(what, export(_ELSEWHERE))}
    elif status.st_mode & 0o077 and status.st_uid == os.geteuid():
        yield {
            "check": "store-owner",
            **problem(
                f"Others on this machine may look into {root} (mode {status.st_mode & 0o777:o}): captures "
                "hold your code.",
                run(f"chmod 700 {shlex.quote(str(root))}"),
            ),
        }


def _disk(root: Path) -> Iterator[Problem]:
    there = next((place for place in (root, *root.parents) if place.is_dir()), None)
    if there is None:
        return
    status = os.statvfs(there)
    free_bytes = status.f_bavail * status.f_frsize
    remedy = export(_ELSEWHERE, first="Make room, or take a place on another disk.")
    if free_bytes < _FREE_NEEDED_BYTES:
        what = f"Only {units.size(free_bytes)} are free on the disk of {root}: a long trace is larger."
        yield {"check": "store-disk", **problem(what, remedy)}
    if status.f_files and status.f_favail < _FREE_NEEDED_INODES:
        what = f"Only {status.f_favail} more files can be made on the disk of {root}."
        yield {"check": "store-disk", **problem(what, remedy)}


def _future(page: Page) -> Iterator[Problem]:
    newest = page.rows[0].id if page.rows else ""
    try:
        made_s = datetime.strptime(newest[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return
    if made_s - time.time() > _CLOCK_SLACK_S:
        yield {
            "check": "store-clock",
            **problem(
                f"The newest capture is of {newest[:15]} (UTC), which is yet to come: this machine's clock "
                "was set back, or another's is ahead. New captures are listed below it.",
                run("sudo timedatectl set-ntp true"),
            ),
        }
