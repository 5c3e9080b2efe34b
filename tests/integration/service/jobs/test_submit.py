"""What a submission is checked for before it waits for the database."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from service.db.models import Device
from service.errors import ProblemError
from tests.support.recorded_context import RecordedContext
from tests.support.submissions import order, submit


def test_what_never_fits_is_refused_while_others_write(yard: RecordedContext) -> None:
    with ThreadPoolExecutor(1) as others, yard.ctx.db.write():
        refused = others.submit(submit, yard.ctx, order(resources={"gpus": 99})).exception(timeout=20)
    assert isinstance(refused, ProblemError)
    assert refused.kind == "never-fits"


def test_a_submission_that_is_sent_again_is_told_whatever_has_changed(yard: RecordedContext) -> None:
    made = submit(yard.ctx, order(key="key")).made
    with yard.ctx.db.write() as tx:
        tx.execute(update(Device).values(present=False))
    again = submit(yard.ctx, order(key="key"))
    assert (again.made.id, again.new) == (made.id, False)
    with pytest.raises(ProblemError) as refused:
        submit(yard.ctx, order(key="another"))
    assert refused.value.kind == "never-fits"
