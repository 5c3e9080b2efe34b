"""What is said of devices that no job has, from the live state; on both databases."""

from service.queue import idle
from tests.support import box
from tests.support.recorded_context import RecordedContext

UUIDS = ("box-gpu-0", "box-gpu-1")


def test_for_whom_a_device_is_idle_and_who_cannot_be_stopped(yard: RecordedContext) -> None:
    ctx = yard.ctx
    (both,) = idle.load(ctx.db, ctx.loader, ctx.now_us())
    assert (both.devices, both.code, both.job) == ([0, 1], "nobody", None)
    box.start(ctx.db, box.add_job(ctx.db, preemptible=False, time_limit="2h"), UUIDS[:1])
    box.add_job(ctx.db, gpus=2)
    (one,) = idle.load(ctx.db, ctx.loader, ctx.now_us())
    assert (one.node, one.devices, one.code, one.job, one.unstoppable) == ("box", [1], "too-few", 2, [1])
    assert one.until is not None
    assert "`preemptible: false`" in one.message
