"""Remedies for errors of the file system of a trial."""

from __future__ import annotations

import errno

_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or have the quota raised",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close files: this host has too many open",
    errno.EACCES: "get write permission there",
    errno.EPERM: "get write permission there",
    errno.EROFS: "have the file system mounted writable",
    errno.ENOENT: "restore what is missing",
}


def remedy(error: OSError) -> str:
    """Return what a person can do about an error."""
    return _REMEDIES.get(error.errno or 0, "check the file system")
