"""The client's calls about sharing the box: users, projects, policy, quotas, usage, reservations."""

from __future__ import annotations

from datetime import date
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter

from torchyard import api
from torchyard.client.connection import Connection
from torchyard.spec.policy import Policy


class SharingCalls:
    """Part of `torchyard.Client`."""

    connection: Connection

    def change_user(self, name: str, changes: api.sharing.UserChanges) -> api.User:
        """Change rights or UNIX account of a user; only what is given."""
        answer = self._send("PATCH", f"/users/{_part(name)}", changes.model_dump(exclude_unset=True))
        return api.User.model_validate_json(answer)

    def delete_user(self, name: str) -> None:
        """End a user's tokens and sessions; jobs and usage stay, and `change_user` can bring the user back."""
        self._send("DELETE", f"/users/{_part(name)}")

    def sign_in_link(self, name: str) -> str:
        """An address that opens the dashboard as another user (administrators); it counts once and for a day."""
        answer = self.connection.request("POST", f"/users/{_part(name)}/sign-in-codes", retry=False)
        return f"{self.connection.url}/#login={api.SignInCode.model_validate_json(answer.content).code}"

    def projects(self) -> list[api.Project]:
        """All projects, by name."""
        return TypeAdapter(list[api.Project]).validate_json(self._send("GET", "/projects"))

    def create_project(self, project: api.NewProject) -> api.Project:
        """Add a project (administrators)."""
        answer = self.connection.request("POST", "/projects", json=project.model_dump(exclude_none=True), retry=False)
        return api.Project.model_validate_json(answer.content)

    def change_project(self, name: str, changes: api.ProjectChanges) -> api.Project:
        """Set who may read the jobs of a project (administrators); only what is given."""
        answer = self._send("PATCH", f"/projects/{_part(name)}", changes.model_dump(exclude_unset=True))
        return api.Project.model_validate_json(answer)

    def add_project_member(self, project: str, user: str, role: api.Role | None = None) -> None:
        """Make a user a member of a project (its administrators, or those of all), or set a member's role."""
        body = None if role is None else {"role": role}
        self._send("PUT", f"/projects/{_part(project)}/members/{_part(user)}", body)

    def remove_project_member(self, project: str, user: str) -> None:
        """End a membership (the project's administrators, or those of all)."""
        self._send("DELETE", f"/projects/{_part(project)}/members/{_part(user)}")

    def policy(self) -> Policy:
        """The policy that the scheduler follows."""
        return Policy.model_validate_json(self._send("GET", "/policy"))

    def set_policy(self, policy: Policy) -> Policy:
        """Set the whole policy."""
        return Policy.model_validate_json(self._send("PUT", "/policy", policy.model_dump(mode="json")))

    def quotas(self) -> list[api.sharing.Quota]:
        """Quotas and how people stand: one's own and the projects', or everybody's (administrators)."""
        return TypeAdapter(list[api.sharing.Quota]).validate_json(self._send("GET", "/quotas"))

    def set_quota(self, kind: api.sharing.AccountKind, name: str, values: api.sharing.QuotaValues) -> api.sharing.Quota:
        """Set quotas of a user or project, or of ``*``; only what is given, and None takes a value away."""
        body = values.model_dump(exclude_unset=True)
        return api.sharing.Quota.model_validate_json(self._send("PUT", f"/quotas/{kind}/{_part(name)}", body))

    def usage(
        self, *, since: date | None = None, until: date | None = None, by: api.sharing.By = "user"
    ) -> api.sharing.UsageReport:
        """GPU-hours by user, project or day; of the last four weeks unless `since` says otherwise."""
        answer = self.connection.request("GET", "/usage", params=_days(since, until) | {"by": by})
        return api.sharing.UsageReport.model_validate_json(answer.content)

    def usage_csv(self, *, since: date | None = None, until: date | None = None, by: api.sharing.By = "user") -> str:
        """Usage as a CSV table with a header."""
        params = _days(since, until) | {"by": by, "format": "csv"}
        return self.connection.request("GET", "/usage", params=params).text

    def usage_digest(self, week: str | None = None) -> api.sharing.Digest:
        """The digest of an ISO week such as ``2026-W47``; without one, of the last that is over."""
        answer = self.connection.request("GET", "/usage/digest", params={"week": week})
        return api.sharing.Digest.model_validate_json(answer.content)

    def reservations(self, *, past: bool = False) -> list[api.sharing.Reservation]:
        """Reservations that hold now or later; with `past`, all."""
        answer = self.connection.request("GET", "/reservations", params={"all": "true" if past else None})
        return TypeAdapter(list[api.sharing.Reservation]).validate_json(answer.content)

    def reserve(self, new: api.sharing.NewReservation) -> api.sharing.Reservation:
        """Keep nodes or GPUs for users and projects, or take nodes out of use."""
        answer = self.connection.request("POST", "/reservations", json=new.model_dump(mode="json"), retry=False)
        return api.sharing.Reservation.model_validate_json(answer.content)

    def cancel_reservation(self, reservation: str) -> None:
        """Give back what is reserved."""
        self._send("DELETE", f"/reservations/{_part(reservation)}")

    def _send(self, method: str, path: str, body: Any = None) -> bytes:
        return self.connection.request(method, path, json=body).content


def _days(since: date | None, until: date | None) -> dict[str, str | None]:
    days = {"from": since, "to": until}
    return {name: None if day is None else day.isoformat() for name, day in days.items()}


def _part(name: str) -> str:
    return quote(name, safe="*")
