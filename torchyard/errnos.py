"""Errors of the operating system, by what they mean to us."""

import errno

#: Nothing more can be written to a disk, or by a user.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
