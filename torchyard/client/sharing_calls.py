"""The client's calls about sharing the box: users, projects, policy, quotas, usage, reservations."""

from __future__ import annotations

from datetime import date

from torchyard import api
from torchyard.client.calls import Calls, part
from torchyard.spec.policy import Policy


class SharingCalls(Calls):
    """People, projects, policy, quotas, usage and reservations, as part of `torchyard.Client`."""

    def change_user(self, name: str, changes: api.sharing.UserChanges) -> api.User:
        """Change rights or UNIX account of a user; only what is given."""
        return self._answer(api.User, "PATCH", f"/users/{part(name)}", changes.model_dump(exclude_unset=True))

    def delete_user(self, name: str) -> None:
        """End a user's tokens and sessions; jobs and usage stay, and `change_user` can bring the user back."""
        self._delete(f"/users/{part(name)}")

    def sign_in_link(self, name: str) -> str:
        """An address that opens the dashboard as another user (administrators); it counts once and for a day."""
        made = self._post(api.SignInCode, f"/users/{part(name)}/sign-in-codes", retry=False)
        return f"{self.connection.url}/#login={made.code}"

    def projects(self) -> list[api.Project]:
        """All projects, by name."""
        return list(self._pages(api.Project, "/projects", {}))

    def create_project(self, project: api.NewProject) -> api.Project:
        """Add a project (administrators)."""
        return self._post(api.Project, "/projects", project.model_dump(exclude_none=True), retry=False)

    def change_project(self, name: str, changes: api.ProjectChanges) -> api.Project:
        """Set who may read the jobs of a project (administrators); only what is given."""
        return self._answer(api.Project, "PATCH", f"/projects/{part(name)}", changes.model_dump(exclude_unset=True))

    def add_project_member(self, project: str, user: str, role: api.Role | None = None) -> None:
        """Make a user a member of a project (its administrators, or those of all), or set a member's role."""
        body = None if role is None else {"role": role}
        self._send("PUT", f"/projects/{part(project)}/members/{part(user)}", body)

    def remove_project_member(self, project: str, user: str) -> None:
        """End a membership (the project's administrators, or those of all)."""
        self._delete(f"/projects/{part(project)}/members/{part(user)}")

    def policy(self) -> Policy:
        """The policy that the scheduler follows."""
        return self._get(Policy, "/policy")

    def set_policy(self, policy: Policy) -> Policy:
        """Set the whole policy."""
        return self._answer(Policy, "PUT", "/policy", policy.model_dump(mode="json"))

    def quotas(self) -> list[api.sharing.Quota]:
        """Quotas and how people stand: one's own and the projects', or everybody's (administrators)."""
        return list(self._pages(api.sharing.Quota, "/quotas", {}))

    def set_quota(self, kind: api.sharing.AccountKind, name: str, values: api.sharing.QuotaValues) -> api.sharing.Quota:
        """Set quotas of a user or project, or of ``*``; only what is given, and None takes a value away."""
        body = values.model_dump(exclude_unset=True)
        return self._answer(api.sharing.Quota, "PUT", f"/quotas/{kind}/{part(name)}", body)

    def usage(
        self, *, since: date | None = None, until: date | None = None, by: api.sharing.By = "user"
    ) -> api.sharing.UsageReport:
        """GPU-hours by user, project or day; of the last four weeks unless `since` says otherwise."""
        return self._get(api.sharing.UsageReport, "/usage", _days(since, until) | {"by": by})

    def usage_csv(self, *, since: date | None = None, until: date | None = None, by: api.sharing.By = "user") -> str:
        """Usage as a CSV table with a header."""
        params = _days(since, until) | {"by": by, "format": "csv"}
        return self.connection.request("GET", "/usage", params=params).text

    def usage_digest(self, week: str | None = None) -> api.sharing.Digest:
        """The digest of an ISO week such as ``2026-W47``; without one, of the last that is over."""
        return self._get(api.sharing.Digest, "/usage/digest", {"week": week})

    def reservations(self, *, past: bool = False) -> list[api.sharing.Reservation]:
        """Reservations that hold now or later; with `past`, all."""
        return list(self._pages(api.sharing.Reservation, "/reservations", {"all": "true" if past else None}))

    def reserve(self, new: api.sharing.NewReservation) -> api.sharing.Reservation:
        """Keep nodes or GPUs for users and projects, or take nodes out of use."""
        return self._post(api.sharing.Reservation, "/reservations", new.model_dump(mode="json"), retry=False)

    def cancel_reservation(self, reservation: str) -> None:
        """Give back what is reserved."""
        self._delete(f"/reservations/{part(reservation)}")


def _days(since: date | None, until: date | None) -> dict[str, str | None]:
    days = {"from": since, "to": until}
    return {name: None if day is None else day.isoformat() for name, day in days.items()}
