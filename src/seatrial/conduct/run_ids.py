"""The ids of runs. They are known before a run is created, so that its intent can be recorded."""

import hashlib

from seatrial.base32 import base32


def run_id_of(tag: str, case_id: str, attempt: int) -> str:
    """Return the id of a run: 12 letters and digits of a hash."""
    text = f"{tag}\n{case_id}\n{attempt}"
    bits = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return base32(bits >> 4, 12)
