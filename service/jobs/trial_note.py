"""The note on being put back after a trial that a submission gets, as the policy that holds then has it."""

from service.scheduler.policy.trials import tries
from torchyard.quantities import format_duration
from torchyard.spec import JobSpec
from torchyard.spec.policy import Order, Policy
from torchyard.spec.restarts import starts_over


def may_start_over(spec: JobSpec) -> bool:
    """Return whether the spec allows it, whatever policy and project say."""
    return starts_over(spec.model_dump(mode="json"))


def trial_note(spec: JobSpec, policy: Policy, *, project_restarts: bool) -> str:
    """Return whether the job may be put back to start over, and when; empty for a job that never may by its spec.

    `project_restarts`: its project lets jobs be put back that do not ask for it.
    """
    if not may_start_over(spec):
        return ""
    if spec.restartable is True and spec.preemptible is not False:
        return _stoppable_note(policy)
    if why := _forbidden(spec, policy, project_restarts=project_restarts):
        return f"it is never put back to start over, as {why}"
    times = "once" if policy.restarts == 1 else f"{policy.restarts} times"
    said = "auto" if spec.restartable == "auto" else "true"
    return (
        f"until it has saved something, it may be put back {format_duration(policy.time_slice or 0)} after its first "
        f"step and start from the beginning, {times} at most (restartable: {said})"
    )


def _stoppable_note(policy: Policy) -> str:
    if not policy.preemption and policy.time_slice is None:
        return "it is never stopped for others, as the policy has preemption: false and time_slice: null"
    return (
        f"once it has run for {format_duration(policy.min_run)}, it may be stopped for others, and starts from its "
        "newest checkpoint, or else from the beginning (restartable: true)"
    )


def _forbidden(spec: JobSpec, policy: Policy, *, project_restarts: bool) -> str | None:
    if not tries(policy):
        return f"the policy has {_off(policy)}"
    if spec.restartable == "auto" and spec.project in policy.no_restarts:
        return f"the policy has project {spec.project} in no_restarts"
    if spec.restartable == "auto" and not project_restarts:
        return f"project {spec.project} wants it"
    return None


def _off(policy: Policy) -> str:
    if policy.order is not Order.FAIR:
        return f"order: {policy.order.value}"
    return "restarts: 0" if policy.time_slice is not None else "time_slice: null"
