"""Decoders that several threads ask for at once."""

from __future__ import annotations

import subprocess
import sys

from tests.waiting import LONG_S

# Types like these, decoded by msgspec itself, end such a process by a segmentation fault.
TOGETHER = """\
import sys, threading
from msgspec import defstruct, field
from seatrial.model.file_model import decoder

TEXT = b'{"g0": {"f0": {"a": [1]}, "f39": {"b": [2]}}, "z": {"x": {"f1": {"q": [3]}}}}'

def kind():
    own = [(f"f{i}", dict[str, list[int]], field(default_factory=dict)) for i in range(40)]
    inner = defstruct("Inner", own)
    outer = [(f"g{i}", inner | None, None) for i in range(20)]
    return defstruct("Outer", [*outer, ("z", dict[str, inner], field(default_factory=dict))])

def decode(ready, kind):
    ready.wait()
    assert decoder(kind).decode(TEXT).z["x"].f1 == {"q": [3]}

sys.setswitchinterval(1e-6)
for _ in range(60):
    ready, one = threading.Barrier(8), kind()
    threads = [threading.Thread(target=decode, args=(ready, one)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("well")
"""


def test_threads_may_decode_a_type_for_the_first_time_together() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER],
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")
