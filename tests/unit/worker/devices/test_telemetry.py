"""The most memory of a GPU that an attempt has held, from recorded looks at its GPUs."""

from torchyard.ids import AttemptId
from torchyard.wire import Phase
from worker.attempts.folder import ShimRecord
from worker.devices.telemetry import GpuMemory
from worker.monitoring.inventory import Status

GIB, S = 2**30, 1_000_000
ATTEMPT = AttemptId("att-1")
SHIM = ShimRecord(pid=1, start_ticks=1, boot_id="", child_pid=2, started_us=S)
RUNS = Status(attempt=ATTEMPT, phase=Phase.RUNNING, shim=SHIM, devices=("GPU-a", "GPU-b"))


def test_the_peak_is_of_the_gpu_of_which_it_held_most() -> None:
    seen = GpuMemory()
    assert seen.peak(ATTEMPT) is None
    for looks in ([{7: GIB, 9: 30 * GIB}, {8: 2 * GIB}], [{7: 3 * GIB, 8: 8 * GIB}, {}], [{7: GIB}, {}]):
        seen.see(RUNS, 2 * S, {7, 8}, looks)
    assert seen.peak(ATTEMPT) == 11 * GIB
    seen.see(RUNS, 900 * S, {7}, [{7: 12 * GIB}, {}])
    assert seen.peak(ATTEMPT) == 12 * GIB
    seen.keep([])
    assert seen.peak(ATTEMPT) is None


def test_what_holds_nothing_has_held_nothing() -> None:
    seen = GpuMemory()
    seen.see(RUNS, 2 * S, {7}, [{}, {}])
    assert seen.peak(ATTEMPT) == 0


def test_where_nobody_could_look_all_the_time_nothing_is_told() -> None:
    seen = GpuMemory()
    seen.see(RUNS, 62 * S, {7}, [{7: GIB}])  # the worker was started again in between
    seen.see(RUNS, 63 * S, {7}, [{7: GIB}])
    assert seen.peak(ATTEMPT) is None
    silent = GpuMemory()
    silent.see(RUNS, 2 * S, {7}, [{7: None}])
    silent.see(RUNS, 2 * S, {7}, [])
    assert silent.peak(ATTEMPT) is None
