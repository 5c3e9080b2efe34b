"""Errors of backups; every message names the mend."""


class BackupError(Exception):
    """A backup could not be made or restored."""
