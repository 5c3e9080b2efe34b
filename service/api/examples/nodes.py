"""Nodes, their devices, the queue, and notices."""

from collections.abc import Mapping

from pydantic import BaseModel

from service.api.examples.jobs import JOB_ID
from service.api.examples.moments import at
from torchyard import api
from torchyard.spec import Priority
from torchyard.states import AttemptState, JobState
from torchyard.wire import DeviceKind

NODE = api.Node(
    name="box",
    state="online",
    hostname="box.lab",
    version="0.1.0",
    last_seen_at=at("9:30"),
    cpus=64,
    memory=549_755_813_888,
    disk_free=2_199_023_255_552,
    labels=["nvlink"],
    enforced=["memory", "cpus", "processes", "gpus"],
    devices=[
        api.NodeDevice(
            uuid="GPU-0",
            index=0,
            kind=DeviceKind.GPU,
            name="NVIDIA H100",
            memory=85_899_345_920,
            unusable=None,
            job=JOB_ID,
            job_number=42,
            job_name="resnet",
            user="ada",
            holders=[api.Holder(job=JOB_ID, job_number=42, job_name="resnet", user="ada", share=None)],
            utilization=97.0,
            memory_used=34_359_738_368,
        )
    ],
    latest={"cpu": 12.5},
)
#: Nodes as certain operations leave them.
ANSWERS: Mapping[str, BaseModel] = {
    "nodes_drain": NODE.model_copy(update={"state": "draining", "draining": True, "drain_message": "new driver"}),
    "nodes_declare_dead": NODE.model_copy(update={"state": "unreachable", "last_seen_at": at("8:00"), "devices": []}),
    "notices_resume": api.Notices(pause=None, announcement=None),
    "notices_withdraw": api.Notices(pause=None, announcement=None),
}
_IDLE = api.IdleDevices(
    node="box",
    devices=[1],
    code="kept",
    message="kept for job 57, which needs 2 GPUs",
    job=57,
    until=at("10:00"),
)

MODELS: tuple[BaseModel, ...] = (
    NODE,
    _IDLE,
    api.NewInvitation(expires_in=3600),
    api.Invitation(node="box2", token="ty_join_example", expires_at=at("10:00")),  # noqa: S106
    api.NewNode(name="box2"),
    api.NodeToken(node="box2", secret="ty_node_example"),  # noqa: S106
    api.NewDrain(message="new driver"),
    api.Timeline(
        since=at("9:00"),
        nodes=[
            api.NodeTimeline(
                name="box",
                state="online",
                maintenance=None,
                devices=[
                    api.DeviceTimeline(
                        uuid="GPU-0",
                        index=0,
                        kind=DeviceKind.GPU,
                        unusable=None,
                        allocations=[
                            api.DeviceAllocation(
                                job=42,
                                attempt=1,
                                state=AttemptState.RUNNING,
                                starts_at=at("9:01"),
                                ends_at=None,
                                share=None,
                            )
                        ],
                        expected=[57],
                        outages=[
                            api.Outage(
                                kind=api.OutageKind.QUARANTINE,
                                reason="Xid 79 (it has fallen off the bus): reset the GPU, or reboot the node, then "
                                "`yard nodes --return box:0` (for an administrator)",
                                starts_at=at("8:03"),
                                ends_at=at("9:00"),
                            )
                        ],
                    )
                ],
                outages=[
                    api.Outage(kind=api.OutageKind.DRAIN, reason="new fan", starts_at=at("8:15"), ends_at=at("8:45"))
                ],
            )
        ],
        jobs=[
            api.TimelineJob(
                number=42,
                name="resnet",
                user="ada",
                readable=True,
                expected_start_at=None,
                expected_start_p90_at=None,
                expected_end_at=at("10:00"),
                expected_end_p90_at=at("11:00"),
            )
        ],
        reservations=[],
        idle=[_IDLE],
    ),
    api.Utilization(
        since=at("9:00"),
        bucket_s=120,
        devices=[
            api.DeviceUtilization(
                node="box", uuid="GPU-0", of_node=False, utilization=[None, 97, 98], memory=[None, 62, 62]
            )
        ],
    ),
    api.QueueEntry(
        position=1,
        job=JOB_ID,
        number=57,
        name="ablation",
        user="grace",
        priority=Priority.NORMAL,
        gpus=2,
        held=False,
        reason="waits for 2 free GPUs",
        expected_start_at=at("10:00"),
        expected_start_p90_at=at("11:00"),
    ),
    api.Why(
        state=JobState.QUEUED,
        summary="Job 57 waits at place 1: needs 2 nodes at the same time, and 1 has enough free now.",
        reasons=[
            api.Reason(
                code="nodes",
                message="needs 2 nodes at the same time, and 1 has enough free now",
                until=at("10:00"),
                params={"needed": 2, "free": 1},
            )
        ],
        position=1,
        expected_start_at=at("10:00"),
        expected_start_p90_at=at("11:00"),
        alternatives=[
            api.Alternative(
                change={"resources.gpus": 1},
                message="with 1 GPU it would start now",
                starts="now",
                command="yard rerun 57 --set resources.gpus=1",
            )
        ],
    ),
    api.Attention(
        kind="idle",
        message="has used no GPU for 10 minutes",
        params={"minutes": 10},
        since=at("9:10"),
        job=42,
        name="resnet",
    ),
    api.Calibration(
        sources=[
            api.SourceCalibration(
                source="progress", n=120, p10=0.11, p50=0.52, p90=0.91, median_relative_error=0.04, since=at("0:00")
            )
        ]
    ),
    api.Notices(
        pause=api.Pause(message="the file server is being mended", user="root", since=at("9:00")),
        announcement=api.Announcement(message="new GPUs on Monday", user="root", since=at("8:00"), until=at("18:00")),
    ),
    api.NewPause(message="the file server is being mended"),
    api.NewAnnouncement(message="new GPUs on Monday", until=at("18:00")),
)
