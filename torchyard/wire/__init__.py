"""Messages between the node agent and the service (``/api/v1/agent``).

The protocol carries a version; the service reads this one and the one before. Times are integer microseconds UTC,
sizes are bytes. Every message may be sent twice.
"""

import lazy_loader

# A module is loaded when something of it is asked for: `yard ls` needs a few of them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
