"""What a run got of the pages, stripes, directory and container that it asked for, by what its job
script wrote.

faults_of_settings(case.settings, run_directory)   # "asked 2M pages, 0 of 512 MiB got"
"""

from pathlib import Path
from typing import NamedTuple

from seatrial.files import read_regular
from seatrial.journal.codes import MISPLACED
from seatrial.lazy import regex
from seatrial.suite.model import RunSettings
from seatrial.suite.run_settings import CONTAINER_FILE, DIRECTORY_FILE, PAGES_FILE, STRIPES_FILE
from seatrial.units import show_bytes
from seatrial.verify.figures import Finding
from seatrial.verify.reading import plain_line

LEAST_KB = {"1G": 1 << 20}  # smaller processes cannot fill such pages
LEAST_KB_USUAL = 32 << 10
LEAST_SHARE = 0.5  # of the memory: stacks and static data are not malloc's
MAX_BYTES = 128 << 10

_SAMPLE = regex(r"(\d{1,15}) (\d{1,15}) (\d{1,15})")
_STRIPES = regex(r"\s*(?:lmm_)?stripe_(count|size): +(-?\d{1,19})(?= |$)")


class PagesUsed(NamedTuple):
    """Memory of the largest process of a run in kB: in 4k pages, in transparent huge pages, and in
    pages of hugetlbfs."""

    small: int
    thp: int
    hugetlb: int


def faults_of_settings(settings: RunSettings, folder: Path) -> list[Finding]:
    """Return what the run in ``folder`` asked for and did not get."""
    faults = [_fault_of_pages(settings.pages, folder)] if settings.pages else []
    if settings.stripe_count or settings.stripe_size:
        faults.append(_fault_of_stripes(settings, _text(folder / STRIPES_FILE)))
    return [Finding(MISPLACED, fault) for fault in faults if fault]


def notice_of_settings(settings: RunSettings, folder: Path) -> str:
    """Return that nothing is known of the pages that the run in ``folder`` asked for: it was too
    short or too small to tell. "" where they were seen, or none were asked for."""
    if not settings.pages:
        return ""
    used = pages_used(_text(folder / PAGES_FILE))
    least = LEAST_KB.get(settings.pages, LEAST_KB_USUAL)
    if used is not None and sum(used) >= least:
        return ""
    seen = "it ended before the first look" if used is None else f"it has {sum(used) >> 10} MiB"
    least_said = "" if used is None else f", less than {least >> 10} MiB"
    return f"whether it got the {settings.pages} pages asked for was not seen: {seen}{least_said}"


def fault_of_directory(settings: RunSettings, folder: Path) -> str:
    """Return why the run in ``folder`` did not work where it asked to: the directory was not made
    (then its script did not run), or is on another file system. "" where nothing is wrong."""
    if not settings.directory:
        return ""
    asked = f"asked directory {settings.directory}"
    text = _text(folder / DIRECTORY_FILE).strip()
    if text.startswith("failed: "):
        return plain_line(f"{asked}; {text[8:]}")
    found = text.split(maxsplit=2)
    wanted = settings.file_system_type
    if len(found) < 3 or wanted in ("", found[0]):
        return ""
    return plain_line(f"{asked} on {wanted}; its file system is {found[0]} at {found[2]}")


def fault_of_container(settings: RunSettings, folder: Path) -> str:
    """Return why the script of the run in ``folder`` was not started: its image was not there. ""
    where nothing is wrong."""
    text = _text(folder / CONTAINER_FILE).strip() if settings.container else ""
    if not text.startswith("failed: "):
        return ""
    return plain_line(f"asked container {settings.container}; {text[8:]}")


def _fault_of_pages(asked: str, folder: Path) -> str:
    """Return the fault of the pages; "" if most memory is in those asked for, or the run was too
    short or too small to tell."""
    used = pages_used(_text(folder / PAGES_FILE))
    if used is None or sum(used) < LEAST_KB.get(asked, LEAST_KB_USUAL):
        return ""
    got = {"4k": used.small, "thp": used.thp}.get(asked, used.hugetlb)
    if got >= LEAST_SHARE * sum(used):
        return ""
    return f"asked {asked} pages, {got >> 10} of {sum(used) >> 10} MiB got"


def pages_used(text: str) -> PagesUsed | None:
    """Decode ``pages.txt``: kB of anonymous memory, of transparent huge pages in it, of hugetlbfs.
    Return None if it is empty or damaged."""
    found = _SAMPLE.fullmatch(text.strip())
    if found is None:
        return None
    anonymous, thp, hugetlb = map(int, found.groups())
    return PagesUsed(max(0, anonymous - thp), thp, hugetlb)


def _fault_of_stripes(settings: RunSettings, text: str) -> str:
    """Return the first fault of the stripes. A file of the run that is on the metadata target has
    none, and one over all targets (-1) may have any number."""
    asked = {"count": settings.stripe_count, "size": settings.stripe_size}
    file, seen = "", False
    for line in text.splitlines():
        if line.startswith("failed: "):
            return plain_line(f"{_asked(settings)}; {line[8:]}")
        if line.startswith("file: "):
            file = line[6:]
        for key, value in _STRIPES.findall(line):
            seen, got = True, int(value)
            free = key == "count" and (got == 0 or (asked[key] == -1 and file != "."))
            if asked[key] and got != asked[key] and not free:
                where = "the directory" if file == "." else file
                return plain_line(f"{_asked(settings)}, {where} has {_shown(key, got)}")
    return "" if seen else f"{_asked(settings)}; lfs told nothing of them"


def _asked(settings: RunSettings) -> str:
    count, size = settings.stripe_count, settings.stripe_size
    number = _shown("count", count) if count else "stripes"
    return f"asked {number}" + (f" of {show_bytes(size)}" if size else "")


def _shown(key: str, value: int) -> str:
    if key == "size":
        return f"stripes of {show_bytes(value)}" if value >= 0 else "stripes of the default size"
    return "stripes over all targets" if value == -1 else f"{value} stripes"


def _text(path: Path) -> str:
    """Return a small file that the job wrote; "" if it is not there or not readable."""
    try:
        return read_regular(path, MAX_BYTES, follow=False).decode(errors="replace")
    except OSError:
        return ""
