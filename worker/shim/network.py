"""A network namespace: the process that enters one has a loopback interface of its own, and nothing else.

Run as a program it tries that and fails where the kernel refuses, so that a worker knows before it takes such jobs.
"""

import ctypes
import fcntl
import os
import struct

LOOPBACK = "lo"
_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
#: `struct ifreq`: a name, then the flags; the rest of the union is not looked at.
_REQUEST = struct.Struct("16sh14x")
_LIBC = ctypes.CDLL(None, use_errno=True)


def isolate() -> None:
    """Leave the node's network for a namespace of this process and its children; raises OSError, as without root.

    Sockets that are open already stay where they are.
    """
    if _LIBC.unshare(_CLONE_NEWNET):  # `os.unshare` is newer than Python 3.11
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace can be made: {os.strerror(number)}")
    import socket  # only here: each shim would wait for it

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        found = fcntl.ioctl(control, _SIOCGIFFLAGS, _REQUEST.pack(LOOPBACK.encode(), 0))
        name, flags = _REQUEST.unpack(found)
        fcntl.ioctl(control, _SIOCSIFFLAGS, _REQUEST.pack(name, flags | _IFF_UP))


if __name__ == "__main__":
    isolate()
