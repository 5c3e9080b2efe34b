"""``nodes``: the box, its devices and who holds them."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common
from torchyard.cli.terminal import styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from torchyard.api import IdleDevices, Node, NodeDevice
    from torchyard.client.client import Client


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(nodes)


def nodes(
    drain: Annotated[str | None, typer.Option(metavar="NODE", help="Give this node no new jobs.")] = None,
    message: Annotated[str, typer.Option(help="With --drain: why, for everybody to read.")] = "",
    stop_jobs: Annotated[
        bool, typer.Option("--stop-jobs", help="With --drain: its running jobs save their work and wait.")
    ] = False,
    resume: Annotated[str | None, typer.Option(metavar="NODE", help="Let this node take jobs again.")] = None,
    return_: Annotated[
        str | None,
        typer.Option(
            "--return", metavar="NODE:DEVICE", help="Use this device again, which a fault has put out of use."
        ),
    ] = None,
    invite: Annotated[
        str | None, typer.Option(metavar="NODE", help="Print the command by which a machine joins as this node, once.")
    ] = None,
    expires: Annotated[str, typer.Option(help="With --invite: it counts for so long, such as 1h.")] = "1h",
    declare_dead: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Your word that this silent node is gone: its jobs start again elsewhere."),
    ] = None,
    json: common.Json = False,
) -> None:
    """List the nodes, their devices, and who holds them."""
    if invite:
        _invite(invite, expires, json=json)
        return
    with common.connect() as client:
        changes = (
            (partial(_drain, client, message=message, stop_jobs=stop_jobs), drain),
            (client.resume, resume),
            (client.declare_dead, declare_dead),
        )
        for change, named in changes:
            if named:
                change(named)
        if return_:
            client.return_device(*_node_and_device(return_))
        found = client.nodes()
        idle, now = client.idle(), client.now()
    if json:
        common.print_json(found)
        return
    for node in found:
        _print_node(node, [each for each in idle if each.node == node.name], now)
    if not found:
        common.note("no node has registered: `yard up`, or `yard nodes --invite NODE`")


def _drain(client: "Client", node: str, *, message: str, stop_jobs: bool) -> None:
    from torchyard.api import NewDrain

    client.drain(node, common.checked(NewDrain, {"message": message}).message, stop_jobs=stop_jobs)


def _invite(node: str, expires: str, *, json: bool) -> None:
    from torchyard.api import NewInvitation

    asked = common.checked(NewInvitation, {"expires_in": expires})
    with common.connect() as client:
        made, url, loopback = client.invite(node, asked), client.connection.url, client.connection.is_loopback
    if json:
        common.print_json(made)
        return
    common.line(f"yard worker --join {url} --name {node} --join-token {made.token}")
    common.note(f"on {node}, once and within {expires}; as root with systemd: sudo yard install with the same options")
    if loopback:
        common.warn(f"other machines reach nothing at {url}: put the service's address in their network in its place")


def _print_node(node: "Node", idle: "list[IdleDevices]", now: "datetime") -> None:
    from torchyard.cli import format as shown
    from torchyard.quantities import format_size

    style = shown.STYLES.get(node.state, "red")
    seen = shown.ago(node.last_seen_at, now)
    draining = ", draining" if node.draining and node.state != "draining" else ""
    why = " for maintenance" if node.maintenance else f": {node.drain_message}" if node.drain_message else ""
    facts = (
        f"  {shown.capacity(node)}  {node.cpus} cores, {format_size(node.memory)}, "
        f"{format_size(node.disk_free)} of disk free, seen {seen}, {shown.enforced(node)}"
    )
    labels = ((f" {label}", "cyan") for label in node.labels)
    common.put((node.name, "bold"), " ", (f"{node.state}{draining}{why}", style), facts, *labels)
    with common.table("DEVICE", "NAME", "MEMORY", "USE", "JOB", "USER", "LINKS") as table:
        for device in node.devices:
            table.add_row(*device_row(device), shown.links(device, node))
    for each in idle:
        common.put((f"  {idle_words(each, node)}", "dim"))
    for offender in node.offenders:
        common.put((offender, "red"))


def idle_words(idle: "IdleDevices", node: "Node") -> str:
    """One line: which devices of the node are idle, for whom, until when, and the line that would change it."""
    from torchyard.cli.format import message

    kinds = {device.index: device.kind.value for device in node.devices}
    numbers = ", ".join(map(str, idle.devices))
    return f"{kinds.get(idle.devices[0], 'device')} {numbers} idle: {message(idle.message)}"


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
