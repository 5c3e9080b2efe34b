"""Certificate of the service: served without a restart once it is renewed."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

#: Seconds between two looks at the files.
LOOK_S: Final = 5.0

_log = logging.getLogger(__name__)


class Certificate:
    """The files of a certificate and its key, and the TLS context that has loaded them.

    OSError and ssl.SSLError for files that cannot be read, and for a key of another certificate.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self.context = self._loaded()
        self._stamp = self._read_stamp()

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*self._files)
        return context

    def _read_stamp(self) -> tuple[tuple[int, int, int], ...]:
        return tuple((file.stat().st_mtime_ns, file.stat().st_size, file.stat().st_ino) for file in self._files)

    def look(self) -> bool:
        """Load the files if they have changed; return whether they were. Files that do not fit change nothing."""
        try:
            stamp = self._read_stamp()
            if stamp == self._stamp:
                return False
            self._loaded()  # by itself first: of half-renewed files a part would be taken
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            _log.warning("the certificate stays as it was, the new files cannot be used: %s", error)
            return False
        self._stamp = stamp
        _log.info("the certificate was renewed: %s", self._files[0])
        return True

    async def watch(self) -> None:
        """Look at the files again and again."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()


def problem(certificate: Path | None, key: Path | None) -> str | None:
    """Return why files of a certificate cannot be served, with the mend; None if they can, or there are none."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        return "tls_cert and tls_key: give both, a certificate and its key"
    for name, file in (("tls_cert", certificate), ("tls_key", key)):
        if not file.is_file():
            return f"{name}: there is no file {file}"
    if key.stat().st_mode & 0o077:
        return f"tls_key: {key} (mode {key.stat().st_mode & 0o777:04o}) is open to other accounts: `chmod 0600 {key}`"
    try:
        Certificate(certificate, key)
    except (OSError, ssl.SSLError) as error:
        return f"tls_cert: {certificate} and {key} are no certificate and its key: {error}"
    return None
