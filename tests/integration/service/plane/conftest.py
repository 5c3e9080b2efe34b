from collections.abc import Iterator

import pytest

from tests.support import plane
from tests.support.live import Live


@pytest.fixture
def data_plane(live_service: Live) -> Iterator[plane.Plane]:
    """A running service with a node, on both databases."""
    with plane.plane(live_service) as found:
        yield found
