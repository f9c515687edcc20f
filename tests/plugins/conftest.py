"""What the tests of runs share: a compiler of the guard that takes little time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seatrial.execute import c_programs


@pytest.fixture(scope="module")
def quick_compiler() -> Iterator[None]:
    """The guard is compiled without optimisation, in a third of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_programs, "FLAGS", ("-std=c11", "-O0"))
        yield
