"""Users, tokens, projects, secrets and the audit."""

from collections.abc import Mapping

from pydantic import BaseModel

from service.api.examples.moments import at
from torchyard import api
from torchyard.api.sharing import UserChanges

#: The body of a secret, which its model would not write out.
SECRET = "hf_example"  # noqa: S105
#: Answers without a model.
TEXTS: Mapping[str, Mapping[str, str]] = {
    "people_list_audit": {
        "text/csv": "at,user,address,action,subject,result,status,times,data\n"
        "2026-11-24T09:00:00Z,ada,192.0.2.7,job.cancel,42,done,,1,{}\n"
    }
}

_USER = api.User(id="user-01jd6z3k8w5r2m9q4t7v0x1y34", name="ada", admin=False, unix_user="ada", created_at=at("8:00"))
_TOKEN = api.Token(
    id="tok-01jd6z3k8w5r2m9q4t7v0x1y35",
    user="ada",
    name="laptop",
    scopes=["read", "submit"],
    node=None,
    created_at=at("8:00"),
    expires_at=None,
    last_used_at=at("9:00"),
)

MODELS: tuple[BaseModel, ...] = (
    _USER,
    _TOKEN,
    api.NewToken(**dict(_TOKEN), secret="ty_example"),  # noqa: S106
    api.NewUser(name="ada", unix_user="ada"),
    UserChanges(role="administrator"),
    api.TokenRequest(name="laptop", scopes=["read", "submit"], expires_in=2_592_000),
    api.TokenRotation(grace=3600),
    api.SignIn(code="K7MQ-2XWP"),
    api.SignInCode(code="K7MQ-2XWP", expires_at=at("9:05")),
    api.SignInWays(oidc="https://id.example.org"),
    api.Settings(
        version="0.1.0",
        installation="yard-01jd6z3k8w5r2m9q4t7v0x1y36",
        user=_USER,
        scopes=["read", "submit"],
        keep_ended_s=2_592_000,
        roles={"vision": "member"},
    ),
    api.Project(name="vision", created_at=at("8:00"), members=["ada", "grace"], roles={"ada": "administrator"}),
    api.NewProject(name="vision", visibility="project"),
    api.ProjectChanges(visibility="everyone", submitters="members"),
    api.ProjectRole(role="viewer"),
    api.Secret(
        name="HF_TOKEN",
        project="vision",
        set_by="ada",
        created_at=at("8:00"),
        changed_at=at("9:00"),
        used_at=at("9:30"),
        used_by=[42, 40],
    ),
    api.AuditEntry(
        id="audit-01jd6z3k8w5r2m9q4t7v0x1y37",
        at=at("9:00"),
        user="ada",
        action="job.cancel",
        subject="42",
        data={},
        address="192.0.2.7",
    ),
)
