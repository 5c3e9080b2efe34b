"""Models of the REST API (``/api/v1``), one per resource. Times are RFC 3339 UTC, sizes bytes."""

import lazy_loader

# A module is loaded when something of it is asked for: `yard ls` needs a few of them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
