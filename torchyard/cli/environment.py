"""Python and the packages that were installed for a job (``show --environment``)."""

from torchyard.api import JobEnvironment
from torchyard.cli import common


def put(found: JobEnvironment) -> None:
    """Print the environment of an attempt."""
    environment = found.environment
    if environment is None:
        common.note("its node has not told what is installed; it does so some seconds after the start")
        return
    python = f"Python {environment.python}" if environment.python else "Python of an unknown version"
    common.put((f"attempt {found.attempt}", "bold"), f"  {python}", (f"  {environment.interpreter}", "dim"))
    width = max(map(len, environment.packages), default=0)
    for name, version in environment.packages.items():
        common.put(f"  {name:<{width}}  ", (version or "version unknown", "cyan" if version else "dim"))
    if environment.left_out:
        common.note(f"{environment.left_out} more packages are left out")
    if environment.error:
        common.note(environment.error)
