"""Job specs, sweeps and the sharing policy: plain data that people write as YAML or JSON."""

import lazy_loader

# A module is loaded when something of it is asked for: the whole spec, with its recipes, takes longer to load than a
# command that only reads.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
