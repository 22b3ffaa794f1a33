"""From a name or path to a report, and two of them compared, on real captures of H200s."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Record, Status, Store
from jupyterlab_jaxprof.captures.shapes import FINDING, SUMMARY, misfit
from jupyterlab_jaxprof.cards import Paper, units
from jupyterlab_jaxprof.diagnosis.units import percent
from jupyterlab_jaxprof.reports import ReportError, compare, compared, examine, pattern_ids, report
from tests.cards.test_cards import Outline
from tests.cli.conftest import add_diagnosed, add_timing, add_trace
from tests.support.captures import DATA, TRACES, unpacked, unpacked_to
from tests.support.findings import finding, summary

NSIGHT = sorted(path.name.removesuffix(".xz") for path in DATA.glob("*.sqlite.xz"))


def ids(record: Record, level: str = "problem") -> list[str]:
    return [finding["id"] for finding in record.findings if finding["level"] == level]


@pytest.mark.parametrize("name", [*(f"{name}.xplane.pb" for name in TRACES), *NSIGHT])
def test_every_real_trace_and_report_has_a_card_that_fits_its_record_and_is_small(
    store: Store, name: str
) -> None:
    found = report(store, str(unpacked(name)))
    record = found.record
    assert record.kind == ("nsys" if name in NSIGHT else "trace")
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert misfit(data["summary"], SUMMARY, "summary") is None
    assert misfit(data["findings"], [FINDING], "findings") is None
    assert {finding["id"] for finding in record.findings} <= set(pattern_ids())
    assert record.findings, "each has something to say, if it is that all is well"
    text, page = found.text(Paper(80)), found.page()
    assert len(page) < 100_000
    assert len(text) < 20_000
    assert all(len(line) <= 80 for line in text.splitlines() if "stored in" not in line), text
    Outline(page.partition("<body")[2].partition(">")[2].partition("</body>")[0])
    first = record.findings[0]["title"].replace("`", "")
    assert first.split()[0] in text


def test_a_healthy_and_a_starved_program(store: Store) -> None:
    starved = report(store, str(unpacked("host_starved.xplane.pb")))
    assert ids(starved.record)[0] == "host-starves-device"
    assert "load_data" in starved.record.findings[0]["title"]
    bound = report(store, str(unpacked("gpu_bound.xplane.pb")))
    assert ids(bound.record) == []
    assert "92 %" in bound.text()
    assert bound.record.environment["jax"] == "0.11.2"
    assert "NVIDIA H200" in bound.text()
    assert bound.record.created.startswith("2026-11-30")


def test_a_capture_of_the_store_is_found_by_name_and_identifier(store: Store) -> None:
    add_trace(store, "my run", "healthy")
    newest = add_trace(store, "my run", "host_starved")
    for target in ("my run", newest, str(store.directory(newest))):
        found = report(store, target)
        assert (found.record.id, found.in_store) == (newest, "/" not in target)
        assert ids(found.record)[0] == "host-starves-device"
        assert "A notice of its own." in found.record.notices
        assert found.record.summary["headline"]["label"] == "median step"
    assert store.get(newest).findings == (), "a report changes nothing"


def test_findings_and_cards_round_shares_alike() -> None:
    """The diagnosis can't import the cards, so that each has the rule."""
    for share in (
        0.0,
        0.0005,
        0.0096,
        0.00961,
        0.0449,
        0.0996,
        0.5049,
        0.98999,
        0.9901,
        0.99651,
        0.99999,
        1.0,
    ):
        assert units.share(share) == percent(share)


def test_the_capture_before_and_one_whose_name_looks_like_a_path(store: Store) -> None:
    first, second, tilde = (add_diagnosed(store, name) for name in ("a/b", "a/b", "a/b~1"))
    assert report(store, "a/b").record.id == second
    assert report(store, "a/b~1").record.id == tilde, "a name that is there is meant before any other"
    store.delete(tilde)
    assert report(store, "a/b~1").record.id == first
    title = compared.text(compare(store, "a/b~1", "a/b")).splitlines()[0]
    assert title == f"a/b ({first}) → a/b ({second})"
    with pytest.raises(ReportError, match=r"only 2 captures called 'a/b', so none is a/b~2"):
        report(store, "a/b~2")
    with pytest.raises(ReportError, match="Both are"):
        compare(store, "a/b", second)
    with pytest.raises(ReportError, match=r"`a/b~1` is the one before"):
        compare(store, "a/b", "a/b~0")
    with pytest.raises(ReportError, match="Both are"):
        compare(store, *[str(unpacked("healthy.xplane.pb"))] * 2)


def test_what_was_diagnosed_when_it_was_taken_is_not_read_again(store: Store) -> None:
    add_diagnosed(store, "known")
    found = report(store, "known")
    assert [finding["level"] for finding in found.record.findings] == ["problem", "note"]
    add_timing(store, "a timing")
    assert report(store, "a timing").record.kind == "time"


@pytest.mark.parametrize("below", ["", "plugins", "plugins/profile/2026"])
def test_a_directory_of_any_depth(store: Store, tmp_path: Path, below: str) -> None:
    unpacked_to(tmp_path / "logs/plugins/profile/2026", "no_steps.xplane.pb")
    found = report(store, str(tmp_path / "logs" / below))
    assert "no-step-markers" in ids(found.record, "note")
    assert [Path(file.path).name for file in found.record.files] == ["no_steps.xplane.pb"]
    assert not found.in_store


def test_all_files_of_a_run_of_two_hosts_are_read(store: Store, tmp_path: Path) -> None:
    for rank in range(2):
        unpacked_to(tmp_path / "run", f"two_hosts_r{rank}.xplane.pb")
    found = report(store, str(tmp_path / "run"))
    assert len(found.record.summary["timeline"]["devices"]) == 2
    assert found.record.summary["steps"]["count"] == 5


@pytest.mark.parametrize(
    "target", ["", "  ", "nothing", "./nothing", "~nobody/x", "20261130-094001-993-cb3da3"]
)
def test_what_is_not_there_is_said_in_a_sentence(store: Store, target: str) -> None:
    add_timing(store, "nothing much")
    with pytest.raises(ReportError) as raised:
        report(store, target)
    assert str(raised.value).endswith((".", "?"))
    if target == "nothing":
        assert "Did you mean 'nothing much'?" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.xplane.pb", b""),
        ("x.xplane.pb", b"\xff" * 500),
        ("x.sqlite", b"SQLite format 3\0"),
        ("x.txt", b"x"),
    ],
)
def test_what_is_no_trace_is_said_with_its_name(
    store: Store, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReportError, match=name.replace(".", r"\.")):
        report(store, str(tmp_path / name))


def test_a_cut_off_trace_is_reported_as_far_as_it_goes(store: Store, tmp_path: Path) -> None:
    path = unpacked_to(tmp_path, "host_starved.xplane.pb")
    content = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(content[:-100])
    unpacked_to(tmp_path / "run", "two_hosts_r0.xplane.pb")
    (tmp_path / "run" / "other.xplane.pb").write_bytes(content[:1000])
    for target in (path, tmp_path / "run"):
        found = report(store, str(target))
        assert found.record.status is Status.PARTIAL
        assert found.record.reason
        assert found.record.notices


def test_a_damaged_capture_is_said_to_be_damaged(store: Store) -> None:
    identifier = add_timing(store, "broken")
    (store.directory(identifier) / "capture.json").write_text("{")
    for target in (identifier, str(store.directory(identifier))):
        with pytest.raises(ReportError, match="damaged"):
            report(store, target)


def test_a_capture_whose_trace_is_gone_still_says_what_its_record_says(store: Store) -> None:
    identifier = add_trace(store, "run", "healthy")
    for path in store.directory(identifier).rglob("*.xplane.pb"):
        path.unlink()
    found = report(store, "run")
    assert "A notice of its own." in found.text()
    assert found.record.notices[-1].startswith("There are no findings. ")
    with pytest.raises(ReportError, match=r"without a timeline to compare\. There are no findings"):
        compare(store, "run", "run")


def test_before_and_after_are_compared_by_step(store: Store) -> None:
    add_trace(store, "before", "host_starved")
    found = compare(store, "before", str(unpacked("healthy.xplane.pb")))
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert found.per_step
    assert data["steps"]["verdict"] == "faster"
    assert data["steps"]["ratio"] == pytest.approx(1.63 / 31.9, rel=0.02)
    assert (data["before"]["name"], data["after"]["name"]) == ("before", "healthy.xplane.pb")
    (gemm,) = [row for row in data["kernels"] if row["name"] == "gemm_fusion_dot"] or [None]
    assert gemm is None or gemm["before_ms"] == pytest.approx(gemm["after_ms"], rel=0.1)
    changes = [row["change_ms"] for row in data["kernels"]]
    assert changes == sorted(changes, reverse=True), "the worst first"
    states = {row["id"]: (row["before"] is not None, row["after"] is not None) for row in data["findings"]}
    assert states["host-starves-device"][0]
    for form in (compared.text(found, Paper(80)), Outline(compared.html(found)).text):
        words = " ".join(form.split())
        for fact in (
            "before → healthy.xplane.pb",
            "31.9 ms",
            "after is 19.5 × faster",
            "host-starves-device",
        ):
            assert fact in words, fact
    assert "<script" not in compared.html(found)


def test_the_same_trace_twice_has_no_difference(store: Store, tmp_path: Path) -> None:
    copy = unpacked_to(tmp_path, "gpu_bound.xplane.pb")
    found = compare(store, str(unpacked("gpu_bound.xplane.pb")), str(copy))
    assert found.steps["verdict"] == "alike"
    assert {row["change_ms"] for row in found.kernels} == {0.0}
    assert found.differences == []
    text = compared.text(found)
    assert "no difference that can be told" in text
    assert "no time changed by more than 5 %" in text


def test_without_steps_whole_traces_are_compared_and_it_is_said(store: Store) -> None:
    found = compare(store, str(unpacked("no_steps.xplane.pb")), str(unpacked("gpu_bound.xplane.pb")))
    assert not found.per_step
    assert found.steps["verdict"] == "unknown"
    assert "compare them only if both did the same" in compared.text(found)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("small_inputs.xplane.pb", "memory_moderate.xplane.pb", "end ahead of the devices' work"),
        ("pause_between_phases.xplane.pb", "one_slow_step.xplane.pb", "no more than the median of these"),
    ],
)
def test_no_verdict_is_given_on_what_was_not_measured_alike(
    store: Store, before: str, after: str, reason: str
) -> None:
    found = compare(store, str(unpacked(before)), str(unpacked(after)))
    assert found.steps["verdict"] == "unknown"
    assert reason in found.steps["reason"]
    assert reason in " ".join(compared.text(found).split())
    assert (found.steps["ratio"] is None) == ("end ahead" in reason)


def test_steps_of_one_name_are_compared_and_all_steps_share_the_kernels(store: Store) -> None:
    files = [str(unpacked(f"{name}.xplane.pb")) for name in ("pause_between_phases", "one_slow_step")]
    found = compare(store, *files)
    assert {found.steps[side]["name"] for side in ("before", "after")} == {"train"}
    assert found.steps["ratio"] == pytest.approx(1, abs=0.1)
    assert found.steps_in_window == {"before": 10, "after": 12}
    (gemm,) = [row for row in found.kernels if row["name"] == "gemm_fusion_dot_general_5"]
    assert (gemm["before_count"], gemm["after_count"]) == (2, 2)
    assert "5 `evaluate` and 5 `train` before; 12 `train` after" in " ".join(compared.text(found).split())
    steps = summary()["steps"]
    for name, others in (
        ("a", [{"name": steps["name"], "count": 12}]),
        ("b", [{"name": "eval", "count": 2}]),
    ):
        add_diagnosed(store, name, steps=steps | {"others": others})
    text = " ".join(compared.text(compare(store, "a", "b")).split())
    assert "18 `load_data` before; 6 `load_data` and 2 `eval` after" in text
    (starved,) = [row for row in found.findings if row["id"] == "host-starves-device"]
    assert starved["before_ms"] == pytest.approx(starved["before"]["lost_ms"] / 10)


def test_what_only_one_recorder_could_tell_is_no_change(store: Store) -> None:
    plain, graphs = (str(unpacked(f"nsys_gpu_bound{mode}.sqlite")) for mode in ("", "_graphmode"))
    found = compare(store, plain, graphs)
    assert "CUDA graphs were seen only before" in found.not_compared
    assert [*found.kernels, *found.hlo_ops, *found.copies] == []
    assert found.not_compared in " ".join(compared.text(found).split())
    other = compare(store, plain, str(unpacked("gpu_bound.xplane.pb")))
    assert "name and count them differently" in other.not_compared
    assert other.differences[-1] == "recorder: Nsight Systems before, JAX's profiler after"

    add_diagnosed(store, "a", timeline=summary()["timeline"] | {"blind": ["compiles"]})
    add_diagnosed(store, "of Nsight", timeline=summary()["timeline"] | {"source": "nsight"})
    steps = compare(store, "a", "of Nsight").steps
    assert (steps["ratio"], steps["verdict"]) == (1, "unknown")
    assert "two different recorders" in steps["reason"]
    with store.begin("trace", "b") as draft:
        compiled = [finding() | {"id": "recompilation"}, finding() | {"id": "device-idle"}]
        draft.publish(status=Status.OK, summary=summary(), findings=compiled)
    states = {row["id"]: row["state"] for row in compare(store, "a", "b").findings}
    assert states == {
        "recompilation": "unknown", "device-idle": "new", "host-starves-device": "gone",
        "host-device-copies": "gone",
    }  # fmt: skip
    text = compared.text(compare(store, "a", "b"))
    assert "recompilation (only after)" in text
    assert "can't be told" in text


def test_few_steps_tell_no_difference(store: Store) -> None:
    def steps(median: float) -> dict[str, object]:
        return {"steps": {"name": "s", "count": 3, "median_ms": median, "durations_ms": [median] * 3}}

    add_diagnosed(store, "a", **steps(1.0))
    add_diagnosed(store, "b", **steps(2.0))
    found = compare(store, "a", "b")
    assert (found.steps["ratio"], found.steps["verdict"]) == (2.0, "unknown")
    assert "too few steps to tell" in compared.text(found)


def test_what_a_table_left_out_is_not_said_to_be_gone(store: Store) -> None:
    row = {"name": "k", "count": 6, "total_ms": 6.0}
    add_diagnosed(store, "a", tables={"kernels": [row]}, tables_left_out={})
    add_diagnosed(store, "b", tables={"kernels": [row | {"name": "other"}]}, tables_left_out={"kernels": 9})
    text = " ".join(compared.text(compare(store, "a", "b")).split())
    assert "– after: not among the largest that the report lists; it may still be there." in text
    assert "– before: not among" not in text


def test_a_timing_has_nothing_to_compare_here(store: Store) -> None:
    add_diagnosed(store, "a")
    add_timing(store, "t")
    with pytest.raises(ReportError, match="--compare 't' compares timings"):
        compare(store, "a", "t")


def test_different_environments_are_named(store: Store) -> None:
    for name, jax in (("a", "0.9.0"), ("b", "0.10.2")):
        with store.begin("trace", name) as draft:
            environment = {
                "jax": jax,
                "devices": [{"kind": "NVIDIA H200"}] * 2,
                "xla_flags": "--x" * (name == "b"),
            }
            draft.publish(status=Status.OK, summary={"timeline": {}}, environment=environment)
    assert compare(store, "a", "b").differences == [
        "jax: 0.9.0 before, 0.10.2 after",
        "XLA_FLAGS: none before, --x after",
    ]
    add_diagnosed(store, "not recorded")
    assert compare(store, "a", "not recorded").differences == []


@pytest.mark.parametrize("factor", [0.4, 0.98, 1.0, 1.3])
def test_the_parts_of_a_step_add_up_to_the_median_that_was_measured(factor: float) -> None:
    found = examine([unpacked("loader_gap.xplane.pb")])
    steps = found.summary["steps"]
    own = {key: steps[key] for key in ("name", "count", "durations_ms")}
    merged = found.summary_with({"steps": own | {"median_ms": steps["median_ms"] * factor}})["steps"]
    assert merged["median_ms"] == steps["median_ms"] * factor
    assert sum(merged["parts"].values()) == pytest.approx(merged["median_ms"])
    assert min(merged["parts"].values()) >= 0
    changed = {
        part for part, value in merged["parts"].items() if value != pytest.approx(steps["parts"][part])
    }
    assert changed <= ({"idle_ms", "host_ms"} if factor < 1 else {"idle_ms"})
