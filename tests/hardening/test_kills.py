"""Whatever is killed at whatever moment: nothing is left behind, nothing is half there, and all goes on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect

from jupyterlab_jaxprof.captures import Row
from jupyterlab_jaxprof.environment.awake import AwakeClock
from jupyterlab_jaxprof.environment.command import KILLED, output_once
from jupyterlab_jaxprof.environment.temporary import TemporaryDirectory
from jupyterlab_jaxprof.server.viewers.caches import MARK
from tests.server.conftest import publish_capture
from tests.support.browser import chromium
from tests.support.endurance import FULL, tries
from tests.support.killed_works import (
    PROFILER,
    SETUP,
    WORKS,
    Cell,
    Command,
    Going,
    Importing,
    Looking,
    Work,
    report_of,
)
from tests.support.kills import (
    LOOK_S,
    PATIENCE_S,
    Site,
    chance,
    check_nothing_left,
    check_store,
    command_of,
    is_of_nsys,
    kill,
    lives,
    wait_until,
)

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long

VICTIMS = ("kernel", "server", "xprof", "nsys", "child")
CASES = (
    [(victim, work.name) for work in WORKS.values() for victim in work.victims]
    if FULL
    else [(victim, "any") for victim in VICTIMS]
)


@pytest.fixture(scope="module", autouse=True)
def _terminals_that_close() -> Iterator[None]:
    """Who runs the tests by nohup lets all that they start ignore SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Site]]:
    """A site with a plain kernel, and one whose kernel nsys has started."""
    made: dict[bool, Site] = {}
    yield made
    for site in made.values():
        site.close()


def site_of(sites: dict[bool, Site], work: Work, tmp_path_factory: pytest.TempPathFactory) -> Site:
    if work.in_kernel not in sites:
        folder = tmp_path_factory.mktemp("site")
        sites[work.in_kernel] = Site(folder, nsys_kernel=work.in_kernel)
    site = sites[work.in_kernel]
    site.restore(SETUP)
    return site


@pytest.mark.parametrize(("victim", "name"), CASES)
def test_after_a_kill_at_any_moment_all_goes_on(sites, tmp_path_factory, victim: str, name: str) -> None:
    moments = chance(victim, name)
    if name == "any":
        takes_part = [work for work in WORKS.values() if victim in work.victims and not work.in_kernel]
        name = moments.choice(takes_part).name
    work = WORKS[name]
    failures: list[str] = []
    for number in range(tries(1, 10)):
        print(f"{victim} during {name}, number {number}")
        try:
            kill_once(site_of(sites, work, tmp_path_factory), work, victim, moments)
        except (AssertionError, OSError, RuntimeError) as error:
            failures.append(f"number {number}: {type(error).__name__}: {error}")
            print("  FAILED:")
            traceback.print_exc(file=sys.stdout)
            sites.pop(work.in_kernel).close()
    assert not failures, "\n".join(failures)


def kill_once(site: Site, work: Work, victim: str, moments: random.Random) -> None:
    if work.name not in site.durations_s:
        undisturbed(site, work)
        site.durations_s[work.name] = undisturbed(site, work)  # the first run of all compiles
    kill_at(site, work, victim, moments.uniform(0, site.durations_s[work.name]), moments)
    check_store(site)
    if site.server.process.poll() is not None:  # it is the server who takes away what the dead have left
        site.restore(SETUP)
    check_nothing_left(site)
    site.restore(SETUP)
    undisturbed(site, work)
    if not work.in_kernel:
        assert site.kernel.run_once_accepted(PROFILER).status == "ok"


def undisturbed(site: Site, work: Work) -> float:
    """Do the work with nobody killed; gives how long it takes, and takes all captures of such work away."""
    clear(site)
    going, began_s = begin(site, work)
    wait_until(going.has_ended, f"{work.name} ends")
    took_s = time.monotonic() - began_s
    assert_done(going)
    for row in clear(site):
        assert row.record is not None
        assert row.record.status == "ok", row.record.reason
    return took_s


def clear(site: Site) -> list[Row]:
    rows = [row for row in site.store.list(limit=1000).rows if row.name != "looked at"]
    for row in rows:
        site.store.delete(row.id)
    return rows


def begin(site: Site, work: Work) -> tuple[Going, float]:
    if work.reads_report:
        report_of(site)
    began_s = time.monotonic()
    return work.begin(site), began_s


def assert_done(going: Going) -> None:
    if isinstance(going, Cell):
        assert going.reply.status == "ok", going.reply.text
    elif isinstance(going, Command):
        assert going.process.returncode == 0, going.said
    elif isinstance(going, Importing):
        assert going.state["state"] == "done", going.state


def kill_at(site: Site, work: Work, victim: str, moment_s: float, moments: random.Random) -> None:
    """Begin the work, kill the victim at that moment or as soon as it is there, and wait for the end."""
    looking = None
    if victim == "xprof":
        looking = Looking(site, run_to_look_at(site))
    going, began_s = begin(site, work)
    while time.monotonic() - began_s < moment_s:
        time.sleep(LOOK_S)
    killed = False
    site.notice()
    while not killed and not going.has_ended():
        killed = any(kill(process) for process in victims(site, victim, going, moments)[:1])
        time.sleep(LOOK_S)
    print(f"  {'killed' if killed else 'it had ended'} at {time.monotonic() - began_s:.3f} s")
    wait_until(going.has_ended, f"{work.name} ends after the kill of {victim}", 180)
    print(f"  ended at {time.monotonic() - began_s:.3f} s: {told(going)}")
    if looking is not None:
        looking.stop()
        print(f"  XProf: {[(status, text[:100]) for status, text in looking.answers if status != 200]}")


def told(going: Going) -> str:
    if isinstance(going, Cell):
        return f"{going.reply.status} {going.reply.text[-300:]!r}"
    return repr(going.said[-300:]) if isinstance(going, Command) else str(getattr(going, "state", ""))


def run_to_look_at(site: Site) -> str:
    rows = site.store.list(text="looked at").rows
    record = rows[0].record if rows else publish_capture(site.store.root, "looked at")
    assert record is not None
    site.xprof()
    return record.xprof_run or ""


def victims(site: Site, victim: str, going: Going, moments: random.Random) -> list[psutil.Process]:
    """The processes that may be killed, in a random order."""
    if victim == "server":
        return [psutil.Process(site.server.pid)]
    if victim == "kernel":
        return [psutil.Process(site.kernel_pid)] if lives(site.kernel_pid) else []
    if isinstance(going, Command) and victim == "child":
        return [psutil.Process(going.process.pid)] if going.process.poll() is None else []
    of = {
        "xprof": lambda process: "xprof_app" in " ".join(command_of(process)),
        "nsys": is_of_nsys,
        "child": lambda process: is_program(command_of(process)),
    }[victim]
    found = [process for process in site.processes() if of(process)]
    moments.shuffle(found)
    return found


def wait_for_program(site: Site) -> None:
    """Wait for the program of the cell; before it there may be one by which nsys is tried."""
    wait_until(site.store.running, "the cell is measured")
    wait_until(lambda: any(is_program(command_of(one)) for one in site.processes()), "the program runs")


def is_program(command: list[str]) -> bool:
    """Whether it is the program of a `%%nsys` cell, or the process of an import."""
    cell = command[1:3] == ["-P", "-c"] and "nsight.child" in command[3]
    return cell or command[1:5] == ["-P", "-m", "jupyterlab_jaxprof.cli.attached", "import"]


@pytest.mark.parametrize("number", [signal.SIGHUP, *([signal.SIGTERM] if FULL else [])])
def test_an_end_of_the_server_by_a_signal_leaves_nothing(sites, tmp_path_factory, number: int) -> None:
    """A closed terminal sends SIGHUP to the server and to a command that runs there; a hub SIGTERM."""
    site = site_of(sites, WORKS["jaxtrace"], tmp_path_factory)
    clear(site)
    site.xprof()
    going = [WORKS[name].begin(site) for name in ("jaxtrace", "upload", "import of a trace")]
    wait_until(lambda: site.store.running() or going[0].has_ended(), "something is measured")
    for pid in (site.server.pid, going[2].process.pid):
        kill(pid, number)
    for one in going:
        wait_until(one.has_ended, "all ends")
    site.server.process.wait(60)
    check_store(site)
    site.restore(SETUP)
    check_nothing_left(site)
    undisturbed(site, WORKS["jaxtrace"])


def test_a_kernel_that_is_restarted_amid_a_run_leaves_nothing(sites, tmp_path_factory) -> None:
    site = site_of(sites, WORKS["nsys"], tmp_path_factory)
    clear(site)
    before = site.kernel_pid
    WORKS["nsys"].begin(site)
    wait_for_program(site)
    (row,) = site.server.get_json("jaxprof/api/running")["running"]
    assert row["name"] == "killed"
    site.restart_kernel()
    wait_until(lambda: not site.server.get_json("jaxprof/api/running")["running"], "nothing is shown to run")
    assert not lives(before)
    check_nothing_left(site)
    check_store(site)
    site.restore(SETUP)
    undisturbed(site, WORKS["jaxtrace"])


def test_a_run_goes_on_after_a_pause(sites, tmp_path_factory, monkeypatch) -> None:
    """As `docker pause` does it: the kernel and all that it has started stop, and go on."""
    site = site_of(sites, WORKS["nsys"], tmp_path_factory)
    clear(site)
    going = WORKS["nsys"].begin(site)
    wait_for_program(site)
    paused = [one.pid for one in site.processes() if one.pid != site.server.pid]
    for pid in paused:
        kill(pid, signal.SIGSTOP)
    time.sleep(1)
    for pid in paused:
        kill(pid, signal.SIGCONT)
    wait_until(going.has_ended, "the cell ends", 180)
    assert_done(going)
    (row,) = clear(site)
    assert row.record is not None
    assert row.record.status == "ok", row.record.reason


def test_a_pause_is_no_time_that_a_program_took(monkeypatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("jupyterlab_jaxprof.environment.awake.time.monotonic", lambda: now_s)
    clock = AwakeClock()
    now_s += 1
    assert clock.now_s() == 1
    now_s += 3600
    assert clock.now_s() < 10


def test_what_was_killed_is_asked_again(tmp_path) -> None:
    there = tmp_path / "there"
    script = f"test -e {there} && echo 7 || kill -9 $$"
    assert output_once("sh", "-c", script) == ("", f"{KILLED} (signal 9)")
    there.touch()
    assert output_once("sh", "-c", script) == ("7\n", None)
    there.unlink()
    assert output_once("sh", "-c", script) == ("7\n", None)


def test_a_temporary_directory_of_the_dead_is_removed_by_the_next(tmp_path) -> None:
    program = (
        "import os; from pathlib import Path; "
        "from jupyterlab_jaxprof.environment.temporary import TemporaryDirectory; "
        f"one = TemporaryDirectory(Path({str(tmp_path)!r})); "
        "print(one.path, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    left = Path(done.stdout.strip())
    assert left.is_dir()
    with TemporaryDirectory(tmp_path) as mine:
        assert not left.exists()
        with TemporaryDirectory(tmp_path) as another:
            assert mine.path.is_dir()
        assert not another.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_whoever_waits_for_xprof_is_told_that_it_was_killed(sites, tmp_path_factory) -> None:
    """As where the memory does not suffice; the page would else wait for its answer without a word."""
    site = site_of(sites, WORKS["jaxtrace"], tmp_path_factory)
    run = run_to_look_at(site)
    pid = site.xprof()["pid"]
    with chromium() as browser:
        page = browser.new_page()
        killer = threading.Thread(target=kill_at_work, args=(pid, site.store.captures_dir), daemon=True)
        killer.start()
        page.goto(f"{site.server.url}jaxprof/xprof?run={run}&tool=trace_viewer@&token={site.server.token}")
        message = page.get_by_role("status").first
        expect(message).to_contain_text(
            "XProf was killed (SIGKILL), most likely since", timeout=PATIENCE_S * 1000
        )
        killer.join()
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#viewer")).to_be_visible(timeout=PATIENCE_S * 1000)
    assert site.xprof()["pid"] != pid


def kill_at_work(pid: int, captures: Path) -> None:
    """Kill XProf while it is at work on a request, which its mark in the capture's directory tells."""
    while True:
        if any(captures.rglob(MARK)):
            kill(pid, signal.SIGSTOP)
            if any(captures.rglob(MARK)):
                kill(pid)
                return
            kill(pid, signal.SIGCONT)
        time.sleep(0.001)
