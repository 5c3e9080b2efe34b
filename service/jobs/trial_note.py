"""The note on being put back after a trial that a submission gets, as the policy that holds then has it."""

from typing import NamedTuple

from service.scheduler.policy.trials import tries
from torchyard.api import NoteCode, SubmissionNote
from torchyard.quantities import format_duration
from torchyard.spec import JobSpec
from torchyard.spec.policy import Order, Policy
from torchyard.spec.restarts import RestartBan, restart_ban, restart_permission


def may_start_over(spec: JobSpec) -> bool:
    """Return whether the spec allows it, whatever policy and project say."""
    return bool(restart_permission(spec.model_dump(mode="json")))


def trial_note(spec: JobSpec, policy: Policy, *, project_restarts: bool) -> SubmissionNote | None:
    """Return whether the job may be put back to start over, and when; None for a job that never may by its spec.

    `project_restarts`: its project lets jobs be put back that do not ask for it.
    """
    if not may_start_over(spec):
        return None
    if spec.restartable is True and spec.preemptible is not False:
        return _stoppable_note(policy)
    if why := _why_never(spec, policy, project_restarts=project_restarts):
        message = f"it is never put back to start over, as {why.words}"
        return SubmissionNote(code=NoteCode.NEVER_PUT_BACK, message=message, params=why.params)
    times = "once" if policy.restarts == 1 else f"{policy.restarts} times"
    said = "auto" if spec.restartable == "auto" else "true"
    after = format_duration(policy.time_slice or 0)
    message = (
        f"until it has saved something, it may be put back {after} after its first "
        f"step and start from the beginning, {times} at most (restartable: {said})"
    )
    params = {"after": after, "times": policy.restarts, "restartable": said}
    return SubmissionNote(code=NoteCode.PUT_BACK, message=message, params=params)


def _stoppable_note(policy: Policy) -> SubmissionNote:
    if not policy.preemption and policy.time_slice is None:
        message = "it is never stopped for others, as the policy has preemption: false and time_slice: null"
        return SubmissionNote(code=NoteCode.NEVER_STOPPED, message=message)
    after = format_duration(policy.min_run)
    message = (
        f"once it has run for {after}, it may be stopped for others, and starts from its "
        "newest checkpoint, or else from the beginning (restartable: true)"
    )
    return SubmissionNote(code=NoteCode.STOPPABLE, message=message, params={"after": after})


class _WhyNever(NamedTuple):
    """Why a job is never put back, in words and as what they are made of."""

    words: str
    params: dict[str, str]


def _why_never(spec: JobSpec, policy: Policy, *, project_restarts: bool) -> _WhyNever | None:
    if not tries(policy):
        off = _off(policy)
        return _WhyNever(f"the policy has {off}", {"by": "policy", "setting": off})
    permission = restart_permission(spec.model_dump(mode="json"))
    ban = restart_ban(permission, spec.project, policy, project_restarts=project_restarts)
    if ban is RestartBan.POLICY_FOR_PROJECT:
        words = f"the policy has project {spec.project} in no_restarts"
        return _WhyNever(words, {"by": "list", "project": spec.project})
    if ban is RestartBan.PROJECT:
        return _WhyNever(f"project {spec.project} wants it", {"by": "project", "project": spec.project})
    return None


def _off(policy: Policy) -> str:
    if policy.order is not Order.FAIR:
        return f"order: {policy.order.value}"
    return "restarts: 0" if policy.time_slice is not None else "time_slice: null"
