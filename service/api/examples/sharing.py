"""Policy, quotas, usage and reservations."""

from collections.abc import Mapping
from datetime import date

from pydantic import BaseModel

from service.api.examples.moments import at
from torchyard.api import sharing
from torchyard.spec.policy import Policy

#: Answers without a model.
TEXTS: Mapping[str, Mapping[str, str]] = {
    "sharing_show_usage": {
        "text/csv": (
            "user,useful,idle,failed,lost,total,stoppable\nada,120.5000,4.0000,1.5000,0.5000,126.5000,80.0000\n"
        )
    }
}

_FIRST, _LAST = date(2026, 11, 16), date(2026, 11, 22)
_ROW = sharing.UsageRow(of="ada", useful=120.5, idle=4.0, failed=1.5, lost=0.5, total=126.5, stoppable=80.0)
_TOTAL = sharing.Hours(useful=120.5, idle=4.0, failed=1.5, lost=0.5, total=126.5, stoppable=80.0)
_OUTCOME = sharing.PolicyOutcome(
    mean_wait_s=420.0,
    mean_jct_s=5_400.0,
    p99_jct_s=86_400.0,
    utilization=0.81,
    avoidable_idle=0.0,
    kept_idle=0.02,
    reserved_idle=0.01,
    jain=0.97,
    preemptions=31,
    restarts=4,
)
_VALUES = sharing.QuotaValues(weight=2.0, max_gpus=4, max_queued=100)

MODELS: tuple[BaseModel, ...] = (
    Policy(half_life=604_800, min_run=120),
    _VALUES,
    sharing.Quota(
        kind="project",
        name="vision",
        own=_VALUES,
        effective=_VALUES,
        standing=sharing.Standing(
            gpus=2.0, gpu_hours=126.5, queued=3, storage=104_925_184, code=3_500_000, usage=88.2, used=0.4, share=0.5
        ),
    ),
    sharing.UsageReport(since=_FIRST, until=_LAST, by="user", rows=[_ROW], total=_TOTAL),
    sharing.Digest(
        week="2026-W47",
        since=_FIRST,
        until=_LAST,
        users=[_ROW],
        projects=[_ROW.model_copy(update={"of": "vision"})],
        total=_TOTAL,
        capacity=1344.0,
        held=0.094,
        useful=0.09,
        started=31,
        mean_wait_s=240.0,
        wastes=[
            sharing.Waste(
                kind="idle",
                user="ada",
                gpu_hours=4.0,
                count=2,
                jobs=[42, 44],
                message="held GPUs without using them: set idle_limit",
            )
        ],
    ),
    sharing.WhatIf(policy=Policy(time_slice=300), weeks=4),
    sharing.WhatIfAnswer(
        jobs=310,
        left_out=0,
        nodes=1,
        gpus=8,
        before=_OUTCOME,
        after=_OUTCOME.model_copy(update={"mean_wait_s": 600.0, "restarts": 2}),
        users=[sharing.UserOutcome(user="ada", jobs=120, mean_wait_before_s=300.0, mean_wait_after_s=480.0)],
    ),
    sharing.NewReservation(name="workshop", users=("ada",), gpus=2, starts_at=at("14:00"), ends_at=at("18:00")),
    sharing.Reservation(
        id="res-01jd6z3k8w5r2m9q4t7v0x1y38",
        name="workshop",
        state="planned",
        users=["ada"],
        projects=[],
        maintenance=False,
        nodes=[],
        gpus=2,
        starts_at=at("14:00"),
        ends_at=at("18:00"),
        created_by="root",
        created_at=at("9:00"),
    ),
)
