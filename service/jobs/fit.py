"""Check that the installation could ever run a job, before it is queued for ever."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, select

from service.db.models import Device, Node
from service.errors import ProblemError
from service.identity import unix_accounts
from service.lifecycle import links
from service.scheduler.explain.fit import enough, never_fits
from service.scheduler.model.nodes import NodeInfo, ResourceRequest, Slot
from service.scheduler_cache.load import resources_of
from torchyard.api import FieldProblem, NoteCode, Reason, SubmissionNote
from torchyard.spec import JobSpec
from torchyard.translatable import TranslatableText, joined
from torchyard.wire import Capability

_DEVICES = select(
    Device.node, Device.uuid, Device.index.label("at"), Device.memory, Device.kind, Device.name.label("product")
).where(Device.present)
_NODES = select(Node.name, Node.cpus, Node.memory, Node.labels, Node.capabilities).order_by(Node.name)
#: Fields of a backend that no node could run, and of a network that none could give.
BACKEND, NETWORK = "recipe.backend", "network"
_MENDS = {
    BACKEND: TranslatableText("take-auto", "Take backend: auto, which finds the right one"),
    NETWORK: TranslatableText("leave-network", "Leave network out"),
}
_ASK_LESS = TranslatableText("ask-less", "Ask for less")


def check(
    tx: Connection, spec: JobSpec, user_id: str | None = None, infos: Sequence[NodeInfo] | None = None
) -> list[SubmissionNote]:
    """Return notes for the event of the submission; the problem ``never-fits`` says what each node has.

    `infos` is the `capacity`, if it has been read. Before the first node has registered everything is taken: a worker
    is about to come, and what it has is not known.
    """
    infos = capacity(tx) if infos is None else infos
    if not infos:
        message = "no node has registered yet, so whether it fits one is not known"
        return [SubmissionNote(code=NoteCode.NO_NODES, message=message)]
    _check_backend(tx, spec)
    resources, nodes = resources_of(spec), spec.resources.nodes
    lacks = never_fits(resources, infos, nodes)
    if lacks:
        what = joined(lacks)
        field = wrong_field(resources, infos, nodes)
        raise ProblemError("never-fits", _refusal(field, what, nodes), errors=[FieldProblem(field=field, message=what)])
    if user_id is not None:
        able = {info.name: info for info in infos if info.could_hold(resources)}
        unix_accounts.check(
            tx, user_id, list(able), lambda left: enough([able[node] for node in left], resources, nodes)
        )
    found = advice(tx, resources, infos, nodes)
    return [SubmissionNote(code=each.params["advice"], message=each.message, params=each.params) for each in found]


def _refusal(field: str, what: str, nodes: int) -> TranslatableText:
    parts = {"field": field, "what": what, "mend": _MENDS.get(field, _ASK_LESS)}
    if nodes == 1:
        return TranslatableText(
            "no-node-could", "{field}: no node could ever run this job: {what}. {mend}, or add a node.", **parts
        )
    return TranslatableText(
        "no-nodes-could", "{field}: no nodes could ever run this job: {what}. {mend}, or add a node.", **parts
    )


def _check_backend(tx: Connection, spec: JobSpec) -> None:
    if spec.recipe is None or spec.recipe.backend != "mpi":
        return
    if not any(Capability.MPI in (each or ()) for each in tx.scalars(select(Node.capabilities))):
        raise ProblemError(
            "never-fits",
            TranslatableText(
                "no-mpi-node",
                "{field}: no node could ever run this job: no node has a torch that was built with MPI. "
                "Take backend: auto, which finds the right one.",
                field=BACKEND,
            ),
            errors=[
                FieldProblem(
                    field=BACKEND,
                    message=TranslatableText("no-mpi", "no node has a torch that was built with MPI: take auto"),
                )
            ],
        )


def advice(tx: Connection, resources: ResourceRequest, infos: Sequence[NodeInfo], nodes: int) -> list[Reason]:
    """Return advice on a job spread over nodes: one node that could hold it, a slow network between them."""
    if nodes == 1:
        return []
    able = [info.name for info in infos if info.could_hold(resources)]
    found = (on_one_node(resources, infos, nodes), _network(links.between(tx, able)))
    return [each for each in found if each is not None]


def _network(found: Sequence[links.MeasuredLink]) -> Reason | None:
    words = links.advice(found)
    return None if words is None else Reason(code="advice", message=words, params=links.params(found))


def on_one_node(resources: ResourceRequest, infos: Sequence[NodeInfo], nodes: int) -> Reason | None:
    """Return advice for a job that is spread over nodes although one could hold it."""
    whole = replace(
        resources, gpus=nodes * resources.gpus, cpus=nodes * resources.cpus, memory=nodes * resources.memory
    )
    info = next((info for info in infos if info.could_hold(whole)), None)
    if nodes == 1 or info is None:
        return None
    message = (
        f"node {info.name} alone could hold all of it, without a network between the ranks: "
        f"take resources.nodes 1 and gpus {whole.gpus}"
    )
    return Reason(
        code="advice", message=message, params={"advice": "one-node", "node": info.name, "needed": whole.gpus}
    )


def wrong_field(resources: ResourceRequest, infos: Sequence[NodeInfo], nodes: int = 1) -> str:
    """Return the first field that too few nodes satisfy even alone; all of them together if each alone would fit."""
    alone = {
        "resources.nodes": ResourceRequest(gpus=0),
        BACKEND: ResourceRequest(gpus=int(resources.gpus_alone), gpus_alone=resources.gpus_alone),
        "resources.gpus": ResourceRequest(gpus=resources.gpus),
        "resources.gpu_memory_min": ResourceRequest(gpus=resources.gpus, gpu_memory_min=resources.gpu_memory_min),
        "resources.gpu_share": ResourceRequest(gpus=resources.gpus, gpu_share=resources.gpu_share),
        "resources.gpu_type": ResourceRequest(gpus=resources.gpus, gpu_type=resources.gpu_type),
        "resources.labels": ResourceRequest(gpus=0, labels=resources.labels),
        NETWORK: ResourceRequest(gpus=0, isolated=resources.isolated),
        "resources.cpus": ResourceRequest(gpus=0, cpus=resources.cpus),
        "resources.memory": ResourceRequest(gpus=0, memory=resources.memory),
    }
    return next((field for field, part in alone.items() if never_fits(part, infos, nodes)), "resources")


def capacity(tx: Connection, *, ready: bool = False) -> list[NodeInfo]:
    """Return the nodes and what they have, whoever holds it.

    `ready`: without nodes that are silent or take no jobs, and devices that are out of use.
    """
    slots: dict[str, list[Slot]] = {}
    for row in tx.execute(_DEVICES.where(Device.unusable.is_(None)) if ready else _DEVICES):
        slot = Slot(uuid=row.uuid, index=row.at, memory=row.memory, kind=row.kind, name=row.product)
        slots.setdefault(row.node, []).append(slot)
    return [
        NodeInfo(
            name=node.name,
            slots=tuple(slots.get(node.name, ())),
            cpus=node.cpus,
            memory=node.memory,
            labels=frozenset(node.labels or ()),
            isolates=Capability.NETWORK_ISOLATION in (node.capabilities or ()),
        )
        for node in tx.execute(_NODES.where(~Node.unreachable, ~Node.draining) if ready else _NODES)
    ]
