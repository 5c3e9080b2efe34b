"""``nodes``: the box, its devices and who holds them."""

from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common
from torchyard.cli.terminal import styled

if TYPE_CHECKING:
    from rich.text import Text

    from torchyard.api import Node, NodeDevice


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(nodes)


def nodes(
    drain: Annotated[str | None, typer.Option(metavar="NODE", help="Give this node no new jobs.")] = None,
    resume: Annotated[str | None, typer.Option(metavar="NODE", help="Let this node take jobs again.")] = None,
    return_: Annotated[
        str | None,
        typer.Option(
            "--return", metavar="NODE:DEVICE", help="Use this device again, which a fault has put out of use."
        ),
    ] = None,
    json: common.Json = False,
) -> None:
    """List the nodes, their devices, and who holds them."""
    with common.connect() as client:
        if drain:
            client.drain(drain)
        if resume:
            client.resume(resume)
        if return_:
            client.return_device(*_node_and_device(return_))
        found = client.nodes()
    if json:
        common.print_json(found)
        return
    for node in found:
        _print_node(node)
    if not found:
        common.note("no node has registered: `yard up`, or `yard worker --join URL` on a node")


def _print_node(node: "Node") -> None:
    from torchyard.cli import format as shown
    from torchyard.quantities import format_size

    style = shown.STYLES.get(node.state, "red")
    seen = shown.ago(node.last_seen_at, shown.now())
    why = " for maintenance" if node.maintenance else ""
    facts = (
        f"  {shown.capacity(node)}  {node.cpus} cores, {format_size(node.memory)}, "
        f"{format_size(node.disk_free)} of disk free, seen {seen}, {shown.enforced(node)}"
    )
    labels = ((f" {label}", "cyan") for label in node.labels)
    common.put((node.name, "bold"), " ", (f"{node.state}{why}", style), facts, *labels)
    with common.table("DEVICE", "NAME", "MEMORY", "USE", "JOB", "USER", "LINKS") as table:
        for device in node.devices:
            table.add_row(*device_row(device), shown.links(device, node))
    for offender in node.offenders:
        common.put((offender, "red"))


def _node_and_device(named: str) -> tuple[str, str]:
    node, colon, device = named.partition(":")
    if not (node and colon and device):
        raise typer.BadParameter(f"--return {named}: give the node and the device's number, such as box1:3")
    return node, device


def device_row(device: "NodeDevice") -> "tuple[str | Text, ...]":
    """A device as cells: kind and index, name, memory, use, its jobs, their users."""
    from torchyard.quantities import format_size

    used = f"{format_size(device.memory_used)} of " if device.memory_used is not None else ""
    use = f"{device.utilization:.0f}%" if device.utilization is not None else ""
    holders = ", ".join(f"{each.job_number} {each.job_name}" for each in device.holders)
    job = styled(device.unusable, "red") if device.unusable else holders or styled("free", "dim")
    memory = f"{used}{format_size(device.memory)}" if device.memory else ""
    users = ", ".join(dict.fromkeys(each.user for each in device.holders))
    return f"{device.kind.value} {device.index}", device.name, memory, use, job, users
