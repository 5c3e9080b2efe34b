from collections.abc import Iterator

import pytest

from tests.support import plane, storage
from tests.support.live import Live


@pytest.fixture
def data_plane(live_service: Live) -> Iterator[plane.Plane]:
    """A running service with a node, on both databases; in the end its sums of stored bytes must be true."""
    with plane.plane(live_service) as found:
        yield found
    storage.check_sums(live_service.context.db)
