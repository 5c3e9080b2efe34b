"""What the tables of nodes show."""

from torchyard.api import Holder, IdleDevices, Node, NodeDevice
from torchyard.cli.box import device_row, idle_words


def device(*holders: Holder) -> NodeDevice:
    values = dict.fromkeys(NodeDevice.model_fields) | {
        "uuid": "u0",
        "index": 0,
        "kind": "gpu",
        "name": "H200",
        "memory": 0,
    }
    return NodeDevice.model_validate(values | {"holders": list(holders)})


def holder(number: int, user: str) -> Holder:
    return Holder(job=f"job-{number}", job_number=number, job_name="net", user=user, share=1)


def test_all_who_share_a_device_are_named() -> None:
    shared = device(holder(7, "ada"), holder(8, "bob"), holder(9, "ada"))
    assert device_row(shared)[-2:] == ("7 net, 8 net, 9 net", "ada, bob")
    assert [str(cell) for cell in device_row(device())[-2:]] == ["free", ""]


def test_idle_devices_are_one_line_with_their_kind() -> None:
    idle = IdleDevices(node="a", devices=[0, 1], code="kept", message="kept for job 3 (bob)", job=3, until=None)
    node = Node.model_construct(name="a", devices=[device()])
    assert idle_words(idle, node) == "gpu 0, 1 idle: kept for job 3 (bob)"
