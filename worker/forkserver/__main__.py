"""The fork server's command line; its own modules are taken off the search path again before the job's are loaded."""

import sys

_AT_START = list(sys.modules)
_TOP = __file__.rpartition("/worker/")[0]
# Under -P the interpreter has not put the folder of this file first.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
sys.path.insert(0, _TOP)
from worker.forkserver.server import main  # noqa: E402

sys.path.remove(_TOP)
main(sys.argv[2:], options=sys.argv[1].split(), at_start=_AT_START)
