"""What can be wrong with a simulation; the messages name the mend."""

from torchyard.exceptions import TorchYardError


class TraceError(TorchYardError):
    """A trace that cannot be read, or jobs that could never run."""


class QuotaError(TorchYardError):
    """Quotas that cannot be read, or under which no job could ever start."""
