"""Pages, malloc, stripes and variables of parameters, as a run gets them on this host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.journal.events import RunJudged
from tests.programs import Workplace

HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")

# It has 48 MiB until it is ended.
HOLD = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) { char *a = malloc(48 << 20); memset(a, 1, 48 << 20); pause(); return a[9]; }
"""
HELD = """
echo "tunables $GLIBC_TUNABLES"
$BUILD/hold &
until [ -s pages.txt ] && read -r small _ huge < pages.txt && [ $((small + huge)) -gt 40000 ]; do
  sleep 0.05
done
kill -KILL $! && wait
true
"""

# Four targets: more stripes than that are not given to a file.
LFS = """#!/bin/bash
case $1 in
  setstripe) echo "$3 $5" > .striped; [ "$3" -lt 100 ] ;;
  getstripe)
    read -r count size < .striped
    if [ "$4" = . ]; then
      echo "stripe_count:  $count stripe_size:   $size stripe_offset: -1"
    else
      [ "$count" -le 4 ] || count=4
      printf 'lmm_stripe_count:  %s\\nlmm_stripe_size:   %s\\n' "$count" "$size"
    fi ;;
esac
"""


@contextlib.contextmanager
def huge_pages(number: int) -> Iterator[None]:
    """So many free huge pages of 2 MiB, set back afterwards."""
    before = HUGE_PAGES.read_text()
    HUGE_PAGES.write_text(f"{number}")
    try:
        yield
    finally:
        HUGE_PAGES.write_text(before)


def test_pages_are_sampled_and_compared(place: Workplace) -> None:
    folder = place.test(
        "hold",
        HELD,
        parameters={"pages": ["default", "4k", "thp", "2M"], "arenas": ["default", 1]},
        exclude=["pages == 'default' or arenas == 1 and pages != 'thp'"],
        build={"sources": ["hold.c"], "script": "gcc -o hold hold.c"},
        run={"pages": "{pages}", "malloc": {"arena_max": "arenas"}},
        environment={"GLIBC_TUNABLES": "glibc.malloc.top_pad=0"},
    )
    (folder / "hold.c").write_text(HOLD)
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {
        "hold{arenas=default,pages=4k}": "pass",
        "hold{arenas=default,pages=thp}": "pass",
        "hold{arenas=1,pages=thp}": "pass",
        "hold{arenas=default,pages=2M}": "misplaced",
    }
    (why,) = {each.reason for each in place.events("t", RunJudged) if each.reason}
    assert why.startswith("asked 2M pages, 0 of 4")
    told = {path.read_text() for path in place.trial().path.glob("runs/hold/*/stdout")}
    top = "tunables glibc.malloc.top_pad=0"
    assert f"{top}:glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1\n" in told
    assert f"{top}:glibc.malloc.hugetlb=2097152\n" in told


@pytest.mark.skipif(not os.access(HUGE_PAGES, os.W_OK), reason="only root has huge pages made")
def test_huge_pages_that_are_there_are_got(place: Workplace) -> None:
    folder = place.test("hold", HELD, run={"pages": "2M"},
                        build={"sources": ["hold.c"], "script": "gcc -o hold hold.c"})  # fmt: skip
    (folder / "hold.c").write_text(HOLD)
    with huge_pages(60):
        assert place.run("--name", "t").code == 0, place.why("hold")
    used = (place.run_folder("hold") / "pages.txt").read_text().split()
    assert int(used[2]) > 40000


def test_the_sites_way_to_get_pages(place: Workplace) -> None:
    place.local(pages={"2M": {"environment": {"SITE_PAGES": "craype-hugepages2M"}}})
    place.test("shows", 'echo "$SITE_PAGES ${GLIBC_TUNABLES-none}"', run={"pages": "2M"},
               verify=[{"contains": "craype-hugepages2M none"}])  # fmt: skip
    assert place.run("--name", "t").code == 0
    assert place.why("shows").startswith("whether it got the 2M pages asked for was not seen: ")


def test_stripes_are_made_before_the_script_and_asked_for_after_it(place: Workplace) -> None:
    program = place.folder / "bin" / "lfs"
    program.parent.mkdir()
    program.write_text(LFS)
    program.chmod(0o755)
    place.test(
        "writes",
        "echo data > out.dat",
        parameters={"stripes": [2, 8, 200]},
        run={"stripe": {"count": "stripes", "size": "4M"}},
        environment={"PATH": f"{program.parent}:/usr/bin:/bin"},
    )
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {
        "writes{stripes=2}": "pass",
        "writes{stripes=8}": "misplaced",
        "writes{stripes=200}": "misplaced",
    }
    reasons = {event.reason for event in place.events("t", RunJudged)}
    assert "asked 8 stripes of 4.0 MiB, out.dat has 4 stripes" in reasons
    assert any("lfs setstripe -c 200 -S 4194304 .: exit code 1" in each for each in reasons)


def test_a_variable_has_the_value_of_its_case_in_runs_alone(place: Workplace) -> None:
    place.test(
        "places",
        'echo "places $OMP_PLACES"; cat $BUILD/built',
        parameters={"places": ["cores", "sockets"]},
        environment={"OMP_PLACES": {"parameter": "places"}},
        build={"script": 'echo "built ${OMP_PLACES-without}" > built'},
    )
    assert place.run("--name", "t").code == 0
    told = {path.read_text() for path in place.trial().path.glob("runs/places/*/stdout")}
    assert told == {"places cores\nbuilt without\n", "places sockets\nbuilt without\n"}
