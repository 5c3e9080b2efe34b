"""``python -m service.simulator``: what a policy would do with a trace of jobs; `yard simulate` is this."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from service.simulator import figures, policies, quotas, report, reservations, trace
from service.simulator.comparison import Setting, compare
from service.simulator.quotas import EVERYBODY, Quotas
from service.simulator.report import PolicyResult
from service.simulator.trace import SECOND, Cluster, TraceJob
from torchyard.exceptions import TorchYardError
from torchyard.quantities import parse_size
from torchyard.spec.policy import Policy

ALL = "all"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _arguments(argv)
    try:
        _run(options)
    except TorchYardError as error:
        print(f"simulate: {error}", file=sys.stderr)  # noqa: T201 - it is a command
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m service.simulator", description=__doc__)
    parser.add_argument("trace", type=Path, help=f"CSV with the columns {','.join(trace.COLUMNS)}")
    parser.add_argument("--gpus", type=_count, required=True, help="GPUs of each node")
    parser.add_argument("--nodes", type=_count, default=1, help="nodes, all alike")
    parser.add_argument("--gpu-memory", type=_size, default=0, help="memory of each GPU, for jobs with a gpu_share")
    known = ", ".join(policies.PRESETS)
    parser.add_argument("--policy", action="append", help=f"{known}, all, or a policy file; may be given several times")
    parser.add_argument("--preemption-cost", type=_seconds, help="seconds; by default what the policy says, 30")
    parser.add_argument("--quotas", type=Path, help="YAML with users and projects, their weights and quotas")
    parser.add_argument("--reservations", type=Path, help=f"CSV with the columns {','.join(reservations.COLUMNS)}")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--by-user", action="store_true", help="in the JSON, what each user had, also without quotas")
    parser.add_argument("--plot", type=_picture, help="draw queue and use of the GPUs over time: .png or .svg")
    return parser.parse_args(argv)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return int(text)


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix not in figures.FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} is no picture: end it with {' or '.join(figures.FORMATS)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def _chosen(names: Sequence[str] | None, cost: int | None) -> dict[str, Policy]:
    wanted = [name for given in names or ["fair"] for name in (policies.PRESETS if given == ALL else [given])]
    changed = {} if cost is None else {"preemption_cost": cost}
    found = {name: policies.named(name).model_copy(update=changed) for name in wanted}
    return {policies.title(name, policy): policy for name, policy in found.items()}


def _run(options: argparse.Namespace) -> None:
    chosen = _chosen(options.policy, options.preemption_cost)
    cluster = Cluster(nodes=options.nodes, gpus=options.gpus, gpu_memory=options.gpu_memory)
    limits = quotas.read(options.quotas) if options.quotas else Quotas()
    jobs = _startable(trace.read(options.trace), cluster, limits)
    kept = reservations.read(options.reservations, cluster) if options.reservations else []
    setting = Setting(jobs=jobs, cluster=cluster, quotas=limits, reservations=kept, drawn=bool(options.plot))
    found = compare(chosen, setting)
    results = [result for result, _ in found]
    if options.plot:
        figures.plot([(result.title, course) for result, course in found if course is not None], options.plot)
    if options.json:
        print(json.dumps(report.plain(results, by_user=options.by_user or bool(limits)), indent=2))  # noqa: T201
    else:
        print(_words(jobs, cluster, results, limits))  # noqa: T201


def _startable(jobs: Sequence[TraceJob], cluster: Cluster, limits: Quotas) -> Sequence[TraceJob]:
    cluster.check(jobs)
    kept, left_out = quotas.startable(jobs, cluster, limits)
    for warning in [*limits.strangers(jobs), *([left_out] if left_out else [])]:
        print(f"simulate: warning: {warning}", file=sys.stderr)  # noqa: T201
    return kept


def _words(jobs: Sequence[TraceJob], cluster: Cluster, results: Sequence[PolicyResult], limits: Quotas) -> str:
    users = {job.user for job in jobs}
    nodes = f"{cluster.nodes} x {cluster.gpus}" if cluster.nodes > 1 else f"{cluster.gpus}"
    whose = "one user" if len(users) == 1 else f"{len(users):,} users"
    head = f"{len(jobs):,} jobs of {whose} in {report.duration(trace.span_us(jobs) / SECOND)}, {nodes} GPUs"
    behind = [line for result in results if (line := report.worst(result))]
    named = users if EVERYBODY in limits.users else users & limits.users.keys()
    parts = [head, report.table(results), report.users(results, named) if named else "", "\n".join(behind)]
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    sys.exit(main())
