"""Every fault of a broken suite at once, with its place, key, value and remedy.

``data/broken`` is broken on purpose, ``data/broken.txt`` is what is said of it. After a deliberate
change write it anew and read the difference:
SEATRIAL_REGENERATE=1 pytest tests/model/suite/test_faults.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles
from seatrial.execute.prepare import prepare_trial
from seatrial.model.test import TrialOptions
from tests.model.suite.helpers import Place

DATA = Path(__file__).parent / "data"


def told(place: Place) -> list[str]:
    with pytest.raises(InvalidFiles) as raised:
        prepare_trial(
            TrialOptions(suites=[str(DATA / "broken")]), str(place.folder / "machine.yaml")
        )
    return [text.replace(f"{DATA}/", "") for text in raised.value.faults]


def test_all_faults_of_a_broken_suite_at_once(place: Place) -> None:
    faults = told(place)
    golden = DATA / "broken.txt"
    if os.environ.get("SEATRIAL_REGENERATE"):
        golden.write_text("\n".join(faults) + "\n")
    assert faults == golden.read_text().splitlines()


def test_every_fault_names_a_line_that_holds_its_key(place: Place) -> None:
    for fault in told(place):
        found = re.match(r"(\S+/test\.yaml):(\d+): (?:([\w.\[\]-]+): )?", fault)
        assert found, fault
        line = (DATA / found[1]).read_text().splitlines()[int(found[2]) - 1]
        words = re.findall(r"[A-Za-z_0-9]+", found[3] or "")
        names = [word for word in words if not word.isdigit()]
        of_a_list = line.lstrip().startswith("- ")
        assert not names or of_a_list or any(name in line for name in names), fault


def test_every_broken_file_is_told_and_the_good_one_is_not(place: Place) -> None:
    files = {str(path.relative_to(DATA)) for path in DATA.rglob("test.yaml")}
    assert {fault.partition(":")[0] for fault in told(place)} == files - {"broken/fine/test.yaml"}
