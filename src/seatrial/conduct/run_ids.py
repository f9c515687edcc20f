"""The ids of runs. They are known before a run is created, so that its intent can be recorded."""

import hashlib

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _BASE32 for second in _BASE32]


def run_id_of(tag: str, case_id: str, attempt: int) -> str:
    """Return the id of a run: 12 letters and digits of a hash."""
    text = f"{tag}\n{case_id}\n{attempt}"
    bits = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    pairs = _PAIRS
    return (
        pairs[bits >> 54]
        + pairs[bits >> 44 & 1023]
        + pairs[bits >> 34 & 1023]
        + pairs[bits >> 24 & 1023]
        + pairs[bits >> 14 & 1023]
        + pairs[bits >> 4 & 1023]
    )
