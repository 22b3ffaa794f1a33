"""`jaxprof` in a terminal, a pipe, and continuous integration."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.cli import main
from jupyterlab_jaxprof.reports import pattern_ids, unseen
from tests.cli.conftest import add_diagnosed, add_timing, add_trace
from tests.support.captures import unpacked
from tests.support.findings import timeline

COMMAND = [sys.executable, "-m", "jupyterlab_jaxprof.cli"]
ROOT = Path(__file__).parents[2]
STARVED = "host_starved.xplane.pb"


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_report(store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    status, out, err = run(capsys, "report", str(unpacked(STARVED)), "--html", str(page))
    assert (status, err) == (0, "")
    assert "The host starves the device" in out
    assert "\x1b" not in out, "no colours in a pipe"
    assert page.read_text("utf-8").startswith("<!doctype html>")
    status, out, _ = run(capsys, "report", str(unpacked(STARVED)), "--json")
    assert json.loads(out)["findings"][0]["id"] == "host-starves-device"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("host-starves-device", 1), ("recompilation,host-*", 1), ("problem", 1), ("*", 1),
        (" recompilation ", 0), ("recompilation, first-call-compile", 0), ("nothing-wrong", 0),
    ],
)  # fmt: skip
def test_fail_on(store: Store, capsys: pytest.CaptureFixture[str], patterns: str, expected: int) -> None:
    status, out, err = run(capsys, "report", str(unpacked(STARVED)), "--fail-on", patterns)
    assert status == expected
    assert "The host starves the device" in out, "the report is printed all the same"
    assert ("host-starves-device" in err) == bool(expected)


def test_what_a_recorder_cant_tell_is_not_taken_for_well(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = timeline() | {"blind": ["devices"]}
    add_diagnosed(store, "cpu", timeline=blind)
    status, _, err = run(capsys, "report", "cpu", "--fail-on", "device-idle,sync-*,recompilation")
    assert status == 0
    assert "can't tell device-idle, sync-every-step: the recorder did not see the devices." in err
    assert run(capsys, "report", "cpu", "--fail-on", "recompilation,nothing-wrong")[2] == ""
    assert set(unseen(["devices", "graphs", "host", "compiles", "allocator"])) < set(pattern_ids())


def test_what_is_well_fails_nothing(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "report", str(unpacked("gpu_bound.xplane.pb")), "--fail-on", "*")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("report", "nothing"), "No capture is called 'nothing'"),
        (("report", "a timing", "--fail-on", "recompilation"), "--fail-on can't tell"),
        (("report", "known", "--fail-on", "recompilatoin"), "Did you mean recompilation?"),
        (("report", "known", "--fail-on", ""), "--fail-on names no finding"),
        (("report", "known", "--html", "/proc/nowhere/x.html"), "can't be written"),
        (("report", "x/y"), "neither a file nor a capture"),
        (("explain", "host-starves-devices"), "Did you mean host-starves-device?"),
        (("explain", "../README"), "No finding is called"),
        (("compare", "known", "known"), "Both are the capture"),
        (("compare", "known", "nothing"), "No capture is called 'nothing'"),
    ],
)
def test_what_can_not_be_done_is_a_sentence_and_status_2(
    store: Store, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    add_diagnosed(store, "known")
    add_timing(store, "a timing")
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert said in err
    assert err.startswith(f"jaxprof {arguments[0]}: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("reprt",), ("report",), ("compare", "a"), ("list", "-n", "0"), ("--no",),
        ("report", "a", "--html", ""), ("report", "a", "--html", "-"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_status_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_help_tells_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["report", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        assert "exit status: 0 done; 1 --fail-on matched" in capsys.readouterr().out


def test_the_guide_names_every_finding() -> None:
    guide = (ROOT / "docs" / "guides" / "ci.md").read_text("utf-8").partition("The names:")[2]
    assert sorted(re.findall(r"`([a-z-]+)`", guide.partition("\n\n`first-call")[0])) == pattern_ids()


@pytest.mark.parametrize("name", pattern_ids())
def test_every_finding_is_explained(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out, err = run(capsys, "explain", name)
    assert (status, err) == (0, "")
    assert out.startswith("# ")
    assert f"`{name}`" in out
    assert ".md)" not in out, "no link to a file that is not there"
    assert max(map(len, out.splitlines())) <= 130, "no row of a table, which a terminal can't show in a line"


def test_a_fault_of_ours_is_not_taken_for_a_finding(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("jupyterlab_jaxprof.reports.report", fails)
    status, _, err = run(capsys, "report", "x", "--fail-on", "problem")
    assert status == 2
    assert "please report it" in err


def test_compare(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    add_trace(store, "before", "host_starved")
    other = str(unpacked("healthy.xplane.pb"))
    status, out, err = run(capsys, "compare", "before", other)
    assert (status, err) == (0, "")
    assert "before → healthy.xplane.pb" in out
    data = json.loads(run(capsys, "compare", "before", other, "--json")[1])
    assert [steps["verdict"] for steps in data["steps"]] == ["faster"]


def test_list(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "list")
    assert (status, out) == (0, f"The store ({store.root}) holds no capture.\n")
    identifiers: list[str] = []
    for name in ("run 0", "run 1", "run 2", "broken"):
        identifiers.append(add_timing(store, name))
        time.sleep(0.002)  # names sort by the millisecond
    broken = identifiers.pop()
    (store.directory(broken) / "capture.json").write_text("{")
    _, out, _ = run(capsys, "list", "-n", "3")
    assert out.index(broken) < out.index(identifiers[2]) < out.index(identifiers[1])
    assert identifiers[0] not in out
    assert "and 1 more" in out
    assert "unreadable" in out
    assert len(json.loads(run(capsys, "list", "--json")[1])["captures"]) == 4


def test_doctor_fails_for_what_must_be_mended_alone(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "doctor")
    assert ("must be mended" in out) == bool(status)
    store.root.write_text("a file where the store should be")
    status, out, _ = run(capsys, "doctor")
    assert status == 1
    assert "must be mended" in out
    assert "Magics" not in out


def test_no_jax_is_needed_to_read_a_trace(store: Store) -> None:
    """With JAX, XProf and IPython hidden, traces, reports and stored captures are read."""
    add_diagnosed(store, "known")
    code = (
        "import sys\n"
        "for name in ('jax', 'jaxlib', 'xprof', 'IPython', 'tornado'): sys.modules[name] = None\n"
        "from jupyterlab_jaxprof.cli import main\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.exit(any([main(['report', target]) for target in ('known', *sys.argv[1:])])\n"
        "         or main(['compare', *sys.argv[1:]]) or main(['list']))"
    )
    files = [str(unpacked(name)) for name in (STARVED, "nsys_gpu_bound.sqlite")]
    done = subprocess.run(
        [sys.executable, "-c", code, *files], env=environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_early_is_no_error(store: Store) -> None:
    for number in range(5):
        add_diagnosed(store, f"run {number}")
    for arguments in (["report", "run 1", "--fail-on", "problem"], ["list", "--json"]):
        process = subprocess.Popen(
            [*COMMAND, *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=60)
        assert b"Traceback" not in err
        assert b"Broken" not in err
        assert process.returncode == (1 if "report" in arguments else 0), "the status is still the report's"


def test_an_output_that_takes_nothing_is_a_sentence_and_status_2(store: Store) -> None:
    add_diagnosed(store, "run")
    command = shlex.join(COMMAND)
    for ending, said in (
        (
            "report run >/dev/full",
            b"jaxprof report: Standard output can't be written: No space left on device.\n",
        ),
        ("report run --json >&-", b"jaxprof report: Nothing can be written: standard output is closed.\n"),
        ("--help >/dev/full", b"jaxprof: Standard output can't be written: No space left on device.\n"),
        ("report run >&- 2>&-", b""),
    ):
        done = subprocess.run(
            ["/bin/sh", "-c", f"{command} {ending}"], env=environment(), capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (2, said)


def test_a_terminal_without_utf8(store: Store) -> None:
    add_diagnosed(store, "naïve – 学習")
    plain = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = subprocess.run(
        [*COMMAND, "report", str(store.directory(_only(store)))], env=plain, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "na?ve - ??" in done.stdout.decode("ascii")
    assert "us each" in done.stdout.decode("ascii")
    done = subprocess.run([*COMMAND, "list", "--json"], env=plain, capture_output=True)
    assert json.loads(done.stdout)["captures"][0]["name"] == "naïve – 学習"


def _only(store: Store) -> str:
    (row,) = store.list().rows
    return row.id


def test_colours_and_width_are_a_terminals(store: Store) -> None:
    add_diagnosed(store, "run")
    text = {no_color: _in_terminal(["report", "run"], no_color) for no_color in ("", "1")}
    assert "\x1b[1m" in text[""]
    assert "\x1b" not in text["1"]
    bare = re.sub(r"\x1b\[\d+m", "", text[""])
    assert bare == text["1"]
    assert max(len(line) for line in bare.splitlines() if "stored in" not in line) <= 80


def _in_terminal(arguments: list[str], no_color: str) -> str:
    """Run the command in a terminal of 80 columns."""
    code = (
        "import fcntl, struct, sys, termios\n"
        "fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))\n"
        "from jupyterlab_jaxprof.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm", NO_COLOR=no_color)
    env.pop("COLUMNS", None)
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], env=env, stdout=theirs, stdin=theirs)
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux tells so that the other side is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return written.decode("utf-8").replace("\r\n", "\n")


def test_the_kernel_for_nsys_is_made_and_removed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    command, place = "install-nsys-kernel", tmp_path / "kernels" / "mine"
    status, out, err = run(capsys, command, "--name", "mine")
    assert (status, err) == (0, "")
    assert f"in {place}." in out
    assert "jaxprof install-nsys-kernel --remove --name mine removes it." in out
    status, out, _ = run(capsys, command, "--remove", "--name", "mine")
    assert out == f"Removed {place}. Kernels that run go on.\n"
    status, _, err = run(capsys, command, "--trace", "nonsense")
    assert status == 2
    assert "can't trace 'nonsense'" in err
