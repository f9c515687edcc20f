"""The sums of files that must be the same bit for bit, where they are learned references."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.suite.check_spec import Check
from seatrial.units import listed

if TYPE_CHECKING:
    from seatrial.suite.model import Test
    from seatrial.verify.references import Reference


def with_sums(test: "Test", learned: Mapping[str, str]) -> "Test":
    """Return a test that checks ``learned`` sums, by the names of files. Of a file whose sum is not
    known, its checks ask only that it is there."""
    verify = [
        replace(check, sha256=learned[str(check.identical)])
        if is_learned(check) and learned.get(check.identical or "")
        else replace(check, identical=None, file=check.identical)
        if is_learned(check)
        else check
        for check in test.verify
    ]
    return replace(test, verify=verify)


def is_learned(check: Check) -> bool:
    """Return whether the sum of a check is a learned reference."""
    return check.identical is not None and check.sha256 is None


def learned_files(test: "Test") -> list[str]:
    """Return the files of a test whose sums are learned references."""
    return [str(check.identical) for check in test.verify if is_learned(check)]


def unlearned_sums(tests: "Mapping[str, Test]", expected: "Iterable[Reference]") -> str:
    """Return a note if files must be the same bit for bit and no sum of them has been learned; else
    ""."""
    known = {(one.test, one.file) for one in expected if one.file}
    files = [
        f"{file} of {name}"
        for name, test in tests.items()
        for file in learned_files(test)
        if (name, file) not in known
    ]
    if not files:
        return ""
    return f"no sum of {listed(files, 3)} has been learned, so every file passes"
