"""The artifact store: files named by their SHA-256."""


class BlobStore:
    """Content-addressed files below one folder."""
