"""What the policy learns of users and projects."""

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import insert

from service.accounting import accounts, usage
from service.accounting.gpu_time import DAY_US
from service.db.engine import Database
from service.db.models import Project, User
from service.scheduler.model import jobs
from tests.support import box

HOUR = 3_600_000_000
#: Six in the evening.
NOW = 20_000 * DAY_US + 18 * HOUR


def add_usage(db: Database, day: int, hours: int, user: str = "user-ada") -> None:
    with db.write() as tx:
        values = {"day": day, "user_id": user, "project": "default", "kind": "useful"}
        usage.add(tx, [{**values, "gpu_us": hours * HOUR, "stoppable_us": 0}])


def test_a_week_is_seven_days_to_the_hour(db: Database) -> None:
    box.add_people(db)
    for day, hours in ((20_000, 1), (19_994, 2), (19_993, 8), (19_992, 100)):
        add_usage(db, day, hours)
    with db.read() as tx:
        # Of the eighth day back, the last quarter is less than seven days ago.
        assert accounts.week_us(tx, "user", NOW) == {"user-ada": 5 * HOUR}
        assert accounts.week_us(tx, "project", NOW) == {"default": 5 * HOUR}


def test_own_values_come_before_everybodys(db: Database) -> None:
    box.add_people(db)
    with db.write() as tx:
        tx.execute(insert(User).values(id="user-grace", name="grace", created_us=1))
        tx.execute(insert(Project).values(name="vision", created_us=1))
        accounts.set_limits(tx, ("user", "*"), {"max_gpus": 4, "max_gpu_hours": 10.0})
        accounts.set_limits(tx, ("user", "user-ada"), {"weight": 2.5, "max_gpus": 1})
        accounts.set_limits(tx, ("project", "vision"), {"max_gpus": 0})
        accounts.charge(tx, ("user", "user-ada"), 100.0, NOW, 3600)
        accounts.charge(tx, ("user", "user-ada"), 100.0, NOW + HOUR, 3600)
    add_usage(db, 20_000, 12)
    with db.read() as tx:
        known = accounts.stored(tx)
        users, projects = (accounts.for_policy(tx, kind, known, NOW) for kind in ("user", "project"))
    ada = jobs.TenantAccount(weight=2.5, usage=150.0, usage_us=NOW + HOUR, max_gpus=1, week_left_us=-2 * HOUR)
    assert users == {"user-ada": ada, "user-grace": jobs.TenantAccount(max_gpus=4, week_left_us=10 * HOUR)}
    assert projects == {"default": jobs.TenantAccount(), "vision": jobs.TenantAccount(max_gpus=0)}


def test_charges_that_meet_all_count(db: Database) -> None:
    def charge(_: int) -> None:
        with db.write() as tx:
            accounts.charge(tx, ("user", "user-ada"), 10.0, NOW, 3600)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(charge, range(16)))
    with db.read() as tx:
        assert accounts.stored(tx)["user", "user-ada"].usage == 160.0


def test_a_value_that_is_taken_away_is_everybodys_again(db: Database) -> None:
    box.add_people(db)
    with db.write() as tx:
        accounts.set_limits(tx, ("user", "user-ada"), {"max_gpus": 1, "max_queued": 5})
        accounts.set_limits(tx, ("user", "user-ada"), {"max_gpus": None})
        accounts.set_limits(tx, ("user", "user-ada"), {})
        assert accounts.limits(accounts.stored(tx), ("user", "user-ada")) == accounts.EffectiveLimits(max_queued=5)
