"""Small traces for the simulator, in seconds."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from service.simulator.engine import simulate
from service.simulator.policies import named
from service.simulator.quotas import Quotas
from service.simulator.reservations import parse
from service.simulator.runs import JobRun
from service.simulator.trace import DEFAULT, SECOND, Cluster, TraceJob
from torchyard.spec.restarts import RestartPermission

COST = 30
#: Columns of reservations.
RESERVED = "start_time,end_time,nodes,gpus,users,maintenance,made_time,cancel_time"


def job(
    submit: float,
    duration: float,
    gpus: int = 1,
    user: str = "ada",
    estimate: float | None = None,
    *,
    stoppable: bool = True,
    restartable: RestartPermission = RestartPermission.AUTO,
    project: str = DEFAULT,
    reports: bool = True,
    resumes: bool = True,
    share: int = 0,
) -> TraceJob:
    """A job of a trace."""
    return TraceJob(
        line=0,
        submit_us=round(submit * SECOND),
        duration_us=round(duration * SECOND),
        gpus=gpus,
        user=user,
        project=project,
        estimate_us=None if estimate is None else round(estimate * SECOND),
        stoppable=stoppable,
        restartable=restartable,
        reports=reports,
        resumes=resumes,
        gpu_share=share,
    )


def run(
    policy: str,
    jobs: Sequence[TraceJob],
    gpus: int = 1,
    nodes: int = 1,
    cost: float = COST,
    quotas: Mapping[str, object] | None = None,
    reservations: Sequence[str] = (),
    memory: int = 0,
) -> list[JobRun]:
    """What becomes of them; quotas and reservations (`RESERVED`) are as in a file."""
    limits, cluster = Quotas.model_validate(quotas or {}), Cluster(nodes=nodes, gpus=gpus, gpu_memory=memory)
    windows = parse([RESERVED, *reservations], cluster)
    return simulate(jobs, cluster, named(policy), round(cost * SECOND), limits, windows)


def spells(runs: Sequence[JobRun]) -> list[list[tuple[float, float]]]:
    """When each job held its GPUs."""
    return [[(spell.start_us / SECOND, spell.end_us / SECOND) for spell in one.spells] for one in runs]


def traces(
    most_gpus: int = 4, most: int = 10, *, flags: bool = False, shares: Sequence[int] = (0,)
) -> st.SearchStrategy[list[TraceJob]]:
    """Some jobs within a few hours, on at most so many GPUs each; with `flags` some cannot be stopped or lose work."""
    flag = st.booleans() if flags else st.just(value=True)
    one = st.builds(
        job,
        submit=st.integers(0, 7200),
        duration=st.one_of(st.integers(0, 300), st.integers(300, 20_000)),
        gpus=st.integers(1, most_gpus),
        user=st.sampled_from(["ada", "bob", "cy"]),
        stoppable=flag,
        restartable=st.sampled_from(RestartPermission) if flags else st.just(RestartPermission.AUTO),
        reports=flag,
        resumes=flag,
        share=st.sampled_from(shares),
    )
    return st.lists(one, min_size=1, max_size=most).map(lambda jobs: sorted(jobs, key=lambda each: each.submit_us))
