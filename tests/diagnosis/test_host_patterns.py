"""What keeps the host busy while a device waits: on timelines made for it, and on ones that nearly are."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyterlab_jaxprof.diagnosis import Finding, Level, diagnose, patterns
from jupyterlab_jaxprof.timeline.model import CopyKind, Phase, Source
from tests.diagnosis.conftest import found
from tests.support.timelines import WORKER, Scene, loop

DOCS = Path(__file__).parents[2] / "docs" / "patterns"


class TestCompiling:
    @staticmethod
    def steps(compiled_in: list[int], *, marked: bool = True, function: str = "train_step") -> Scene:
        scene = Scene()
        dispatches = loop(scene, 8, dispatch_us=30_000, device_us=10_000, marked=marked)
        for step in compiled_in:
            scene.compile(dispatches[step] + 100, 1000, function, Phase.TRACE)
            scene.compile(dispatches[step] + 2000, 27_000, function)
        return scene

    def test_the_first_step_s_is_a_first_call(self) -> None:
        findings = found(self.steps([0]))
        assert findings["first-call-compile"].lost_ms == pytest.approx(28.0)
        assert "`train_step`" in findings["first-call-compile"].title
        assert "recompilation" not in findings

    def test_a_few_shapes_without_steps_are_told_and_are_no_recompilation(self) -> None:
        scene = self.steps([0, 3, 5], marked=False)
        findings = found(scene)
        assert "recompilation" not in findings
        assert findings["first-call-compile"].lost_ms == pytest.approx(84.0)
        assert "was compiled 2 times more" in " ".join(findings["first-call-compile"].evidence)

    def test_later_ones_of_the_same_function_are_recompilations(self) -> None:
        findings = found(self.steps([0, 3, 5]))
        assert findings["recompilation"].lost_ms == pytest.approx(56.0)
        assert "2 compiles" in findings["recompilation"].evidence[0]
        assert "in steps 3, 5" in findings["recompilation"].evidence[0]
        assert findings["first-call-compile"].lost_ms == pytest.approx(28.0)

    def test_one_that_ran_before_is_compiled_again_though_its_first_compile_is_not_in_the_trace(self) -> None:
        assert "recompilation" in found(self.steps([4]))
        assert "first-call-compile" not in found(self.steps([4]))

    def test_another_function_s_first_call_in_a_later_step_is_no_recompilation(self) -> None:
        findings = found(self.steps([4], function="evaluate"))
        assert "recompilation" not in findings
        assert "`evaluate`" in findings["first-call-compile"].title
        assert "in step 4" in findings["first-call-compile"].title

    def test_several_shapes_in_the_first_step_are_first_calls(self) -> None:
        scene = self.steps([0])
        scene.compile(5000, 500, "train_step")
        scene.compile(7000, 500, "train_step")
        assert "recompilation" not in found(scene)

    def test_without_steps_compiles_at_the_start_are_no_recompilation(self) -> None:
        scene = self.steps([0], marked=False)
        for time in (2000, 4000, 6000, 8000):
            scene.compile(time, 1000, "broadcast_in_dim")
        assert "recompilation" not in found(scene)
        assert "recompilation" in found(self.steps([0, 2, 4, 6], marked=False))

    def test_programs_of_the_cache_are_told_as_such(self) -> None:
        scene = Scene()
        dispatches = loop(scene, 4, dispatch_us=30_000)
        scene.compile(dispatches[0] + 100, 20_000, "train_step", Phase.CACHE_READ)
        finding = found(scene)["first-call-compile"]
        assert "from the persistent cache" in finding.title
        assert "20.0 ms tracing, lowering and reading" in finding.evidence[1]
        assert not any("jax_compilation_cache_dir" in advice for advice in finding.next)

    @staticmethod
    def called(function: str, compiled_in: list[int], *, besides: bool) -> dict[str, Finding]:
        """A function that is called in each step; in some steps a compile is in that call, or in another."""
        scene = Scene()
        for step in range(8):
            start = 1000 + 50_000 * step
            if step not in compiled_in or besides:
                scene.dispatch(start, 100, function)
            if step in compiled_in:
                scene.dispatch(start + 200, 30_000, function)
                scene.compile(start + 300, 29_000, function)
            scene.kernel(start + 40_000, 5000)
            scene.step(start, 49_000, step)
        return found(scene)

    @pytest.mark.parametrize("function", ["train_step", "<lambda>"])
    def test_a_call_besides_the_usual_ones_is_another_function_s_first(self, function: str) -> None:
        findings = self.called(function, [4], besides=True)
        assert "recompilation" not in findings
        assert "another function of that name" in findings["first-call-compile"].evidence[0]
        # but not where it happens again and again
        assert "recompilation" in self.called(function, [3, 4, 5], besides=True)

    def test_a_lambda_compiled_once_more_may_be_another_one(self) -> None:
        finding = self.called("train_step", [4], besides=False)["recompilation"]
        assert "was compiled again once between steps" in finding.title
        finding = self.called("<lambda>", [4], besides=False)["recompilation"]
        assert finding.level is Level.NOTE
        assert "another function of that name" in finding.title
        assert any("%%jaxtime" in advice for advice in finding.next)
        finding = self.called("<lambda>", [4, 6], besides=False)["recompilation"]
        assert "compiled again 2 times" in finding.title

    def test_what_another_thread_compiles_holds_no_step_up(self) -> None:
        scene = Scene()
        loop(scene, 8, device_us=20_000)
        for start in (2000, 50_000, 90_000):
            scene.compile(start, 30_000, "other", thread=WORKER)
        findings = found(scene)
        assert not {"recompilation", "first-call-compile"} & set(findings)
        assert "nothing-wrong" in findings

    def test_two_processes_that_compile_one_function_don_t_recompile(self) -> None:
        scene = Scene(devices=0, hosts=2)
        scene.compile(1000, 30_000, "stage")
        scene.compile(40_000, 30_000, "stage", thread=2)
        findings = found(scene)
        assert "recompilation" not in findings
        assert "1 program" in findings["first-call-compile"].evidence[0]

    def test_a_step_s_compiling_is_told_by_one_number(self) -> None:
        scene = Scene()
        end = loop(scene, 6)[-1] + 6000
        scene.dispatch(end, 41_000)
        scene.compile(end + 100, 30_000, "train_step")
        scene.compile(end + 31_000, 9_000, "helper")
        scene.step(end, 42_000, 6)
        diagnosis = diagnose(scene.timeline())
        first = next(one for one in diagnosis.findings if one.id == "first-call-compile")
        assert "39.0 ms of compiling" in diagnosis.summary["steps"]["slowest"][0]["why"]
        assert "of which 39.0 ms compiling" in first.evidence[-1]


class TestHostBound:
    def test_annotated_work_is_named(self) -> None:
        scene = Scene()
        loop(scene, host_us=20_000, work="load_batch")
        findings = found(scene)
        finding = findings["host-starves-device"]
        assert "`load_batch` is where the time goes" in finding.title
        assert finding.lost_ms == pytest.approx(6 * 20.0, rel=0.01)
        assert findings["device-idle"].level is Level.PROBLEM
        assert "sync-every-step" not in findings  # the host is what takes longer: waiting costs little

    def test_the_innermost_name_that_covers_it_is_the_one(self) -> None:
        scene = Scene()
        for start in loop(scene, host_us=20_000, work="prepare"):
            scene.annotation(start - 19_500, 19_000, "decode_jpeg")
        assert "`decode_jpeg`" in found(scene)["host-starves-device"].title

    def test_a_python_function_is_named_where_nothing_is_annotated(self) -> None:
        scene = Scene()
        for start in loop(scene, host_us=20_000):
            scene.python(start - 20_000, 20_000, "loader.py:12 next_batch")
            scene.python(start - 19_000, 18_900, "time sleep")
        finding = found(scene)["host-starves-device"]
        assert "`next_batch`" in finding.title
        assert any("slept" in sentence for sentence in finding.evidence)

    def test_unseen_work_is_told_without_a_name(self) -> None:
        scene = Scene()
        loop(scene, host_us=20_000)
        finding = found(scene)["host-starves-device"]
        assert "does not show in what" in finding.title
        assert any("TraceAnnotation" in advice for advice in finding.next)

    def test_a_short_silence_is_no_accusation(self) -> None:
        scene = Scene()
        loop(scene, host_us=600)
        assert "host-starves-device" not in found(scene)

    def test_work_beside_a_busy_device_costs_nothing(self) -> None:
        scene = Scene()
        for start in loop(scene, device_us=30_000):
            scene.annotation(start + 200, 25_000, "load_batch")
        findings = found(scene)
        assert "host-starves-device" not in findings
        assert "nothing-wrong" in findings

    def test_another_thread_s_work_is_not_blamed_while_the_leading_one_dispatches(self) -> None:
        scene = Scene()
        loop(scene, dispatch_us=8000, device_us=2000)
        scene.annotation(1000, 60_000, "prefetch", thread=WORKER)
        assert "host-starves-device" not in found(scene)

    def test_garbage_collection_is_named(self) -> None:
        scene = Scene()
        for start in loop(scene, host_us=30_000):
            scene.python(start - 30_000, 29_000, "gc collect")
        finding = found(scene)["host-starves-device"]
        assert "garbage collection" in finding.title
        assert any("gc.freeze" in advice for advice in finding.next)

    def test_a_name_is_credited_with_its_own_time_only(self) -> None:
        scene = Scene()
        starts = loop(scene, 8, host_us=4000)
        end = starts[-1] + 6000
        scene.annotation(end, 60_000, "save_figures")
        scene.dispatch(end + 60_000, 100)
        scene.kernel(end + 60_100, 5000)
        scene.step(end + 60_000, 5200, 8)
        finding = found(scene)["host-starves-device"]
        assert "`save_figures` is where the time goes (60.0 ms" in finding.title
        assert [one.label for one in finding.ranges] == ["save_figures"]
        assert "ran once" in finding.evidence[1]
        assert not any("loader" in advice for advice in finding.next)

    def test_several_names_share_it(self) -> None:
        scene = Scene()
        for start in loop(scene, host_us=20_000):
            scene.annotation(start - 20_000, 12_000, "load")
            scene.annotation(start - 8000, 7900, "log")
        finding = found(scene)["host-starves-device"]
        assert "`load` and `log` are where the time goes" in finding.title
        assert "in the median step" in finding.title

    def test_an_epoch_around_the_steps_tells_nothing(self) -> None:
        scene = Scene()
        loop(scene, host_us=20_000)
        scene.annotation(500, 400_000, "epoch")
        assert "epoch" not in found(scene)["host-starves-device"].title


class TestSmallWork:
    @staticmethod
    def eager(per_step: int, device_us: float = 1.0, modules: int = 3, *, marked: bool = True) -> Scene:
        scene = Scene()
        time = 1000.0
        for number in range(4):
            start = time
            for operation in range(per_step):
                name = ("sin", "multiply", "add", "tanh")[operation % modules]
                scene.dispatch(time, 40, name)
                scene.kernel(
                    time + 45, device_us, f"wrapped_{name}", f"jit_{name}", program=operation % modules
                )
                time += 60 if device_us < 50 else device_us
            if marked:
                scene.step(start, time - start, number, "chain")
        return scene

    def test_many_operations_of_python_are_named(self) -> None:
        findings = found(self.eager(50))
        finding = findings["eager-dispatch"]
        assert "50 operations a step" in finding.title
        assert "Put what `chain` marks under `jax.jit`" in finding.next[0]
        assert "`sin`, `multiply` and `add`" in finding.title
        assert "`chain`" in finding.evidence[1]
        assert "tiny-kernels" not in findings
        assert "batch-too-small" not in findings

    def test_large_operations_one_by_one_keep_the_device_busy(self) -> None:
        findings = found(self.eager(50, device_us=2000.0))
        assert "eager-dispatch" not in findings
        assert "nothing-wrong" in findings

    def test_a_few_belong_to_any_step(self) -> None:
        findings = found(self.eager(5))
        assert "eager-dispatch" not in findings
        assert "batch-too-small" in findings

    def test_one_small_function_called_again_and_again_may_be_the_step_itself(self) -> None:
        assert "eager-dispatch" not in found(self.eager(20, modules=1, marked=False))
        assert "eager-dispatch" in found(self.eager(20, modules=4, marked=False))

    @staticmethod
    def compiled(kernels: int, kernel_us: float, gap_us: float, *, distinct: int = 4) -> Scene:
        scene = Scene()
        time = 1000.0
        for number in range(3):
            start = time
            scene.dispatch(time, kernels * (kernel_us + gap_us) + 100, "rnn")
            time += 80
            scene.kernel(time, kernel_us, "prologue", "jit_rnn")
            time += kernel_us
            for index in range(kernels):
                scene.kernel(time, kernel_us, f"fusion.{index % distinct}", "jit_rnn")
                time += kernel_us + gap_us
            scene.step(start, time + 50 - start, number, "rnn")
            time += 60
        return scene

    def test_many_tiny_kernels_of_one_program_are_told_from_operations_of_python(self) -> None:
        findings = found(self.compiled(400, 1.0, 4.0))
        assert "401 tiny kernels" in findings["tiny-kernels"].title
        assert "in a loop" in findings["tiny-kernels"].title
        assert any("unroll" in advice for advice in findings["tiny-kernels"].next)
        assert "eager-dispatch" not in findings

    def test_without_a_loop_it_is_told_differently(self) -> None:
        finding = found(self.compiled(400, 1.0, 4.0, distinct=400))["tiny-kernels"]
        assert "loop" not in finding.title
        assert not any("unroll" in advice for advice in finding.next)

    def test_fewer_larger_kernels_that_wait_for_their_launch(self) -> None:
        findings = found(self.compiled(60, 15.0, 12.0))
        assert "launch-bound" in findings
        assert "tiny-kernels" not in findings

    def test_kernels_back_to_back_are_nothing(self) -> None:
        findings = found(self.compiled(400, 50.0, 1.0))
        assert not {"tiny-kernels", "launch-bound"} & set(findings)

    def test_a_step_smaller_than_its_dispatch(self) -> None:
        scene = Scene()
        loop(scene, dispatch_us=300, device_us=40, wake_us=10)
        assert "too small for this device" in found(scene)["batch-too-small"].title
        scene = Scene()
        loop(scene, dispatch_us=300, device_us=400, wake_us=10)
        assert "batch-too-small" not in found(scene)


class TestWaiting:
    @pytest.mark.parametrize(("device_us", "named"), [(2000.0, True), (20_000.0, False)])
    def test_waiting_in_each_step_matters_where_steps_are_short(self, device_us: float, named: bool) -> None:
        scene = Scene()
        loop(scene, dispatch_us=300, device_us=device_us, wake_us=300)
        findings = found(scene)
        assert ("sync-every-step" in findings) is named
        if named:
            assert findings["sync-every-step"].lost_ms == pytest.approx(6 * 0.6, rel=0.02)
        else:
            assert "nothing-wrong" in findings

    def test_our_own_fence_is_not_the_user_s_waiting(self) -> None:
        scene = Scene()
        for start in loop(scene, dispatch_us=300, device_us=2000, wake_us=300):
            scene.dispatch(start + 320, 20, "jaxprof_fence")
            scene.kernel(start + 2301, 1, "fence", "jit_jaxprof_fence")
        diagnosis = diagnose(scene.timeline())
        findings = {finding.id: finding for finding in diagnosis.findings}
        assert "sync-every-step" not in findings
        assert any("The magic waits for each step" in one for one in findings["device-idle"].evidence)
        assert all("fence" not in row["name"] for row in diagnosis.summary["tables"]["kernels"])
        assert diagnosis.summary["timeline"]["devices"][0]["ops"] == 24

    def test_idle_time_that_is_all_our_own_fence_s_has_no_cause(self) -> None:
        scene = Scene()
        scene.kernel(0, 10)
        scene.annotation(5, 5_000, "jit_jaxprof_fence")
        scene.kernel(4_000, 10)
        summary = diagnose(scene.timeline()).summary
        assert summary["timeline"]["devices"][0]["idle_ms"] > 3
        assert summary["timeline"]["drawing"]["gaps"] == []

    def test_one_slow_step_is_not_every_step(self) -> None:
        scene = Scene()
        loop(scene, 10, dispatch_us=100, device_us=10_000, wake_us=100)
        last = scene.timeline().recorded_ns[1] / 1e3
        scene.dispatch(last + 10, 100)
        scene.kernel(last + 110, 10_000)
        scene.step(last + 5, 80_000, 10)
        assert "sync-every-step" not in found(scene)

    @staticmethod
    def reading(size_bytes: int = 4, module: str = "") -> Scene:
        scene = Scene()
        for start in loop(scene, dispatch_us=100, device_us=200, wake_us=400):
            scene.range(start + 150, 500, "np.asarray(jax.Array)")
            scene.copy(start + 350, 2, CopyKind.DEVICE_TO_HOST, size_bytes, module=module)
        return scene

    def test_reading_a_value_in_each_step(self) -> None:
        finding = found(self.reading())["device-to-host-read"]
        assert "in every step" in finding.title
        assert "6 copies of 4 B" in finding.evidence[0]

    def test_how_it_is_read_is_told_where_python_is_traced(self) -> None:
        scene = self.reading()
        scene.python(1150, 500, "array.py:293 __float__")
        assert "(float(x))" in found(scene)["device-to-host-read"].title

    def test_a_copy_that_a_program_makes_itself_is_no_read(self) -> None:
        assert "device-to-host-read" not in found(self.reading(module="jit_train_step"))

    def test_a_read_is_told_by_its_copy_alone(self) -> None:
        scene = Scene(source=Source.NSIGHT)
        for start in loop(scene, dispatch_us=100, device_us=300, wake_us=300):
            scene.copy(start + 450, 2, CopyKind.DEVICE_TO_HOST, 4)
        assert "device-to-host-read" in found(scene)

    def test_reading_what_is_long_there_costs_little(self) -> None:
        scene = Scene()
        for start in loop(scene, dispatch_us=100, device_us=20_000, wake_us=50):
            scene.range(start + 200, 30, "np.asarray(jax.Array)")
            scene.copy(start + 210, 2, CopyKind.DEVICE_TO_HOST, 4)
        findings = found(scene)
        assert findings.get("device-to-host-read") is None
        assert "nothing-wrong" in findings


def test_every_pattern_has_its_page() -> None:
    assert set(patterns.IDS) == {path.stem for path in DOCS.glob("*.md")} - {"index"}
    index = (DOCS / "index.md").read_text()
    assert all(f"({one}.md)" in index for one in patterns.IDS)
