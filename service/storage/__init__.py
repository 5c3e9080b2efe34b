"""The artifact store: bytes on the disk, and the rows that say who needs them."""
