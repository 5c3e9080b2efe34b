"""The artifact store: bytes on the disk, names of files, retention of checkpoints."""
