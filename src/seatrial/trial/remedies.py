"""What to do where a trial's files cannot be made."""

from __future__ import annotations

import errno

_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or have the quota raised",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "this host has too many files open; end what holds them",
    errno.EACCES: "get the right to write there",
    errno.EPERM: "get the right to write there",
    errno.EROFS: "have it made writable",
    errno.ENOENT: "put back what is missing",
}


def remedy(error: OSError) -> str:
    """A few words that fit the error."""
    return _REMEDIES.get(error.errno or 0, "see to the file system")
