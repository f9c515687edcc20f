"""The ids of runs. They are known before a run is created, so that its intent can be recorded."""

import base64
import hashlib


def run_id_of(tag: str, case_id: str, attempt: int) -> str:
    """Return the id of a run: 12 letters and digits of a hash."""
    text = f"{tag}\n{case_id}\n{attempt}"
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest)[:12].decode().lower()
