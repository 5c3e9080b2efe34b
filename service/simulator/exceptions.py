"""Errors of a simulation; their messages say how to correct the input."""

from torchyard.exceptions import TorchYardError


class TraceError(TorchYardError):
    """A trace or its reservations that cannot be read, or jobs that could never run."""


class QuotaError(TorchYardError):
    """Quotas that cannot be read, or under which no job could ever start."""
