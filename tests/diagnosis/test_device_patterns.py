"""What is found on the devices, between them and in the recording itself: made for it, and nearly it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyterlab_jaxprof.diagnosis import Level, diagnose
from jupyterlab_jaxprof.timeline.model import CopyKind, OpKind, RangeKind, Source
from tests.diagnosis.conftest import found
from tests.support.timelines import WORKER, Scene, loop

DOCS = Path(__file__).parents[2] / "docs" / "patterns"


class TestCopies:
    @staticmethod
    def feeding(size_bytes: int, copy_us: float, staging_us: float = 0.0) -> Scene:
        scene = Scene()
        for start in loop(scene, dispatch_us=200 + staging_us + copy_us, device_us=5000):
            if staging_us:
                scene.range(start + 100, staging_us, "Transpose::Execute", thread=WORKER)
            scene.copy(start + 100 + staging_us, copy_us, CopyKind.HOST_TO_DEVICE, size_bytes)
        return scene

    def test_data_of_each_step_from_numpy(self) -> None:
        finding = found(self.feeding(128 * 2**20, 2400, 20_000))["host-to-device-copies"]
        assert "128 MiB" in finding.title
        assert "pageable memory, through a pinned buffer" in finding.title
        assert finding.lost_ms == pytest.approx(6 * 22.4, rel=0.02)

    def test_from_pinned_memory(self) -> None:
        finding = found(self.feeding(128 * 2**20, 2400))["host-to-device-copies"]
        assert "from pinned memory" in finding.title

    def test_scalars_are_no_data(self) -> None:
        assert "host-to-device-copies" not in found(self.feeding(4, 2))

    def test_copies_beside_computing_cost_nothing(self) -> None:
        scene = Scene()
        for start in loop(scene, device_us=20_000):
            scene.copy(start + 1000, 4000, CopyKind.HOST_TO_DEVICE, 2**28)
        assert "host-to-device-copies" not in found(scene)

    def test_data_that_is_read_in_each_step(self) -> None:
        scene = Scene()
        for start in loop(scene, device_us=5000, wake_us=5000):
            scene.copy(start + 5200, 4000, CopyKind.DEVICE_TO_HOST, 2**28)
        assert "256 MiB is copied from the device to the host" in found(scene)["device-to-host-copies"].title

    def test_a_rest_before_a_large_copy_of_a_report_is_no_loading(self) -> None:
        """128 MiB come into the pinned buffer in 25 ms, which a report doesn't show; not in 80 ms."""
        for rest_us, loads in ((25_000, False), (80_000, True)):
            scene = Scene(source=Source.NSIGHT)
            for start in loop(scene, host_us=rest_us, dispatch_us=2500, device_us=5000):
                scene.copy(start, 2400, CopyKind.HOST_TO_DEVICE, 128 << 20)
            findings = found(scene)
            assert ("host-starves-device" in findings) is loads
            copies = findings["host-to-device-copies"]
            assert ("about as long as JAX needs" in " ".join(copies.evidence)) is not loads
            assert "pinned memory" not in copies.title

    def test_what_a_read_costs_is_told_with_the_user_s_name(self) -> None:
        scene = Scene()
        for start in loop(scene, device_us=5000, wake_us=60_000):
            scene.annotation(start + 5200, 55_000, "save")
            scene.range(start + 5300, 54_000, "np.asarray(jax.Array)")
            scene.copy(start + 30_000, 4000, CopyKind.DEVICE_TO_HOST, 2**28)
        evidence = " ".join(found(scene)["device-to-host-copies"].evidence)
        assert "while the host read, most of it in `save`" in evidence
        assert "until a copy was ready" not in evidence

    @pytest.mark.parametrize(
        ("kernel", "advised"),
        [
            ("input_concatenate_fusion", "x.at[i].set"),
            ("wrapped_transpose", "einsum"),
            ("copy.3", "donate_argnums=0"),
        ],
    )
    def test_the_advice_is_for_the_kind_of_moving(self, kernel: str, advised: str) -> None:
        scene = Scene()
        for start in loop(scene, device_us=6000, wake_us=3000):
            scene.kernel(start + 6100, 2000, kernel)
        advice = found(scene)["device-copies"].next
        assert len(advice) == 1
        assert advised in advice[0]

    def test_layout_changes(self) -> None:
        scene = Scene()
        for start in loop(scene, device_us=6000, wake_us=3000):
            scene.kernel(start + 6100, 2000, "input_transpose_fusion.3")
        assert "`input_transpose_fusion.3`" in found(scene)["device-copies"].evidence[1]
        scene = Scene()
        for start in loop(scene, device_us=6000, wake_us=3000):
            scene.kernel(start + 6100, 2000, "gemm_transpose_free")
        assert "device-copies" not in found(scene)


class TestInsideAProgram:
    @pytest.mark.parametrize(
        ("name", "detail"), [("pure_callback.1", ""), ("Thunk", "hlo_op=pure_callback.1")]
    )
    def test_a_callback_holds_the_device_up(self, name: str, detail: str) -> None:
        scene = Scene()
        for start in loop(scene, dispatch_us=2500, device_us=3000):
            scene.kernel(start + 50, 400, "before")
            scene.range(start + 400, 2000, name, detail=detail)
        finding = found(scene)["host-callback"]
        assert "in every step" in finding.title
        assert finding.lost_ms == pytest.approx(6 * 1.95, rel=0.02)

    def test_a_callback_beside_a_busy_device_costs_nothing(self) -> None:
        scene = Scene()
        for start in loop(scene, device_us=30_000):
            scene.range(start + 400, 2000, "debug_callback.1")
        assert "host-callback" not in found(scene)

    def test_xla_s_own_callbacks_are_none(self) -> None:
        scene = Scene()
        for start in loop(scene, dispatch_us=3000, device_us=3000):
            scene.range(start + 400, 2000, "ThenExecuteCallback:GetEventForComputeStreamSyncPoint")
        assert "host-callback" not in found(scene)


class TestSeveralDevices:
    @staticmethod
    def parallel(
        exposed_us: float,
        hidden_us: float,
        slow: float = 1.0,
        talk: tuple[float, ...] = (),
        size_bytes: int = 0,
    ) -> Scene:
        scene = Scene(devices=2)
        time = 1000.0
        for number in range(6):
            scene.dispatch(time, 100)
            for device in (0, 1):
                compute = 3000 * (slow if device else 1.0)
                scene.kernel(time + 100, compute, device=device)
                scene.collective(
                    time + 100 + compute - hidden_us,
                    hidden_us + exposed_us + (talk[device] if talk else 0),
                    device,
                    size_bytes,
                )
            duration = 200 + 3000 * slow + exposed_us + max(talk, default=0)
            scene.step(time, duration, number)
            time += duration + 20
        return scene

    def test_exposed_collectives(self) -> None:
        finding = found(self.parallel(1500, 100))["exposed-collectives"]
        assert finding.level is Level.PROBLEM
        assert finding.lost_ms == pytest.approx(6 * 1.5, rel=0.01)
        assert "12 x `all-reduce`" in finding.evidence[1]

    @pytest.mark.parametrize("size_bytes", [4, 1 << 20])
    def test_a_few_bytes_that_take_long_are_waiting_and_no_exchange_of_gradients(
        self, size_bytes: int
    ) -> None:
        finding = found(self.parallel(1500, 100, size_bytes=size_bytes))["exposed-collectives"]
        tiny = size_bytes == 4
        assert ("wait for each other" in finding.title) is tiny
        advice = " ".join([finding.meaning, *finding.next])
        assert ("bfloat16" in advice) is not tiny
        assert ("comes late" in advice) is tiny
        assert f"`all-reduce` of {'4 B' if tiny else '1 MiB'}" in " ".join(finding.evidence)

    def test_hidden_ones_are_none(self) -> None:
        assert "exposed-collectives" not in found(self.parallel(10, 1500))

    def test_a_device_that_computes_longer(self) -> None:
        finding = found(self.parallel(100, 0, slow=1.5))["straggler"]
        assert "GPU 1 computes 50 % longer" in finding.title
        assert "straggler" not in found(self.parallel(100, 0, slow=1.02))

    def test_a_device_that_comes_late_is_told_by_the_others_waits(self) -> None:
        finding = found(self.parallel(100, 0, talk=(1500.0, 0.0)))["straggler"]
        assert "GPU 1 comes late" in finding.title

    def test_waiting_for_each_other_at_the_start_makes_no_straggler(self) -> None:
        scene = self.parallel(100, 0)
        scene.collective(100, 50, 0)
        scene.collective(100, 5000, 1)
        scene.step(90, 700, -1)
        assert "straggler" not in found(scene)

    def test_devices_of_different_programs_are_not_compared(self) -> None:
        scene = Scene(devices=2)
        loop(scene, device_us=5000)
        for step in range(6):
            scene.kernel(1200 + 5300 * step, 500, "other", "jit_evaluate", device=1)
        assert "straggler" not in found(scene)

    def test_a_device_without_any_work_is_not_accused(self) -> None:
        scene = Scene(devices=2)
        loop(scene, device_us=20_000)
        findings = found(scene)
        assert "nothing-wrong" in findings
        assert "device-idle" not in findings


class TestMemory:
    @pytest.mark.parametrize(("in_use", "named"), [(95_000_000_000, True), (70_000_000_000, False)])
    def test_nearly_full(self, in_use: int, named: bool) -> None:
        scene = Scene()
        loop(scene, device_us=20_000)
        scene.memory(5000, in_use)
        findings = found(scene)
        assert ("memory-pressure" in findings) is named
        if named:
            assert "95.0 of 100.0 GB" in findings["memory-pressure"].title
            assert findings["memory-pressure"].lost_ms is None

    def test_what_was_held_after_the_steps_does_not_count(self) -> None:
        scene = Scene()
        loop(scene, device_us=20_000)
        scene.memory(5000, 10_000_000_000)
        scene.memory(900_000, 99_000_000_000)
        assert "memory-pressure" not in found(scene)


class TestRecording:
    def test_graphs_hide_their_kernels(self) -> None:
        scene = Scene(source=Source.NSIGHT)
        time = 1000.0
        for number in range(5):
            scene.kernel(time, 3000, "graph", kind=OpKind.GRAPH)
            scene.step(time - 10, 3050, number)
            time += 3100
        assert "100 %" in found(scene)["hidden-in-graphs"].title

    def test_a_host_that_could_not_be_read_is_not_accused_of_having_no_steps(self) -> None:
        loop(scene := Scene(), marked=False)
        assert any("step_num" in advice for advice in found(scene)["no-step-markers"].next)
        scene = Scene()
        scene.blind = frozenset({"host", "compiles"})
        for step in range(4):
            scene.kernel(1000 + 10_000 * step, 2000)
        findings = found(scene)
        assert "no-step-markers" not in findings
        assert not any("Python tracer" in advice for advice in findings["device-idle"].next)

    def test_a_report_with_hardly_a_range_tells_what_drops_them(self) -> None:
        scene = Scene(source=Source.NSIGHT)
        scene.range(1000, 500, "sleep", RangeKind.SYSTEM)
        assert any("nvtx 0.2.11" in advice for advice in found(scene)["no-device-activity"].next)

    def test_no_steps(self) -> None:
        scene = Scene()
        loop(scene, marked=False, device_us=20_000, wake_us=10)
        findings = found(scene)
        assert {"no-step-markers", "nothing-wrong"} <= set(findings)
        assert any("StepTraceAnnotation" in advice for advice in findings["no-step-markers"].next)

    def test_steps_that_end_before_their_work(self) -> None:
        scene = Scene()
        for step in range(6):
            scene.dispatch(1000 + 200 * step, 150)
            scene.step(1000 + 200 * step, 190, step)
            scene.kernel(1200 + 10_000 * step, 9990)
        findings = found(scene)
        early = findings["steps-end-early"]
        assert early.level is Level.NOTE
        assert "the devices work 9.99 ms a step (mean)" in early.title
        assert "Read a step's time as 9.99 ms:" in early.next[0]
        assert "nothing-wrong" in findings
        loop(scene := Scene(), device_us=20_000)
        assert "steps-end-early" not in found(scene)

    def test_the_python_tracer_s_cost(self) -> None:
        scene = Scene()
        loop(scene, 6, device_us=2000)
        for call in range(5000):
            scene.python(1100 + call * 2, 1, f"module.py:{call % 7} function")
        assert "about" in found(scene)["profiler-overhead"].title
        scene = Scene()
        for start in loop(scene, 6, device_us=2000):
            scene.range(start, 10, "train.py:3 main", RangeKind.PYTHON)
        assert "profiler-overhead" not in found(scene)

    def test_dropped_events(self) -> None:
        scene = Scene()
        loop(scene)
        scene.dropped_events = 1234
        assert "1,234 events" in found(scene)["dropped-events"].title

    def test_a_cpu_is_accused_of_nothing_that_can_t_be_known(self) -> None:
        scene = Scene(devices=0)
        scene.blind = frozenset({"devices", "allocator"})
        for step in range(5):
            scene.dispatch(1000 + 30_000 * step, 100)
            scene.annotation(2000 + 30_000 * step, 25_000, "load")
            scene.step(1000 + 30_000 * step, 29_000, step)
        diagnosis = diagnose(scene.timeline())
        assert {finding.id for finding in diagnosis.findings} == {"no-device-activity"}
        assert diagnosis.summary["steps"]["count"] == 5
        assert diagnosis.summary["steps"]["parts"] is None
        assert diagnosis.summary["timeline"]["busy_share"] is None

    def test_a_cpu_s_compiles_are_told(self) -> None:
        scene = Scene(devices=0)
        scene.blind = frozenset({"devices"})
        for step in range(5):
            scene.dispatch(1000 + 30_000 * step, 25_000, "f")
            scene.compile(1100 + 30_000 * step, 24_000, "f")
            scene.step(1000 + 30_000 * step, 29_000, step)
        assert "4 times between steps" in found(scene)["recompilation"].title

    def test_a_host_that_was_not_recorded_is_accused_of_nothing(self) -> None:
        scene = Scene(source=Source.NSIGHT)
        scene.blind = frozenset({"host", "python"})
        for step in range(6):
            scene.kernel(1000 + 30_000 * step, 5000)
        findings = found(scene)
        assert "host-starves-device" not in findings
        assert "device-idle" in findings

    def test_nothing_at_all(self) -> None:
        diagnosis = diagnose(Scene().timeline())
        assert [finding.id for finding in diagnosis.findings] == ["no-device-activity"]
