from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles, UsageError
from seatrial.judge.learning import accept, merged
from seatrial.judge.references import Learned, Reference, applies, identity, load, loads

FILE = Path("references.yaml")
OLD = """\
# frost, after the upgrade
references:
  # from the vendor's offer
  - test: hpl
    metric: rate
    unit: Tflop/s
    min: 4.1   # contract
    # see page 7

  # measured
  - test: stream
    metric: triad
    where: {threads: 2}
    unit: MB/s
    value: 12000
# the end
"""
TRIAD = Reference(
    test="stream",
    metric="triad",
    unit="MB/s",
    where={"threads": 2},
    value=12345.6,
    lower=-0.02,
    learned=Learned(trial="20261121", runs=5, at="2026-11-21"),
)
COPY = Reference(test="stream", metric="copy", unit="MB/s", value=9000.0, toolchain="gcc*")


def test_a_reference_is_exchanged_and_the_rest_stays_as_it_is_written() -> None:
    assert merged(OLD, [TRIAD, COPY], FILE) == OLD.replace(
        """\
    unit: MB/s
    value: 12000
# the end
""",
        """\
    unit: MB/s
    value: 12345.6
    lower: -0.02
    learned: {trial: "20261121", runs: 5, at: 2026-11-21}
# the end
  - test: stream
    metric: copy
    toolchain: gcc*
    unit: MB/s
    value: 9000
""",
    )


@pytest.mark.parametrize(
    "old",
    [
        "",
        "# nothing yet\n",
        "references: []\n",
        "references: [{test: hpl, metric: rate, unit: T, min: 4}]",
        "references: [\n  {test: hpl, metric: rate, unit: T, min: 4},\n]\n",
        "references:\n- test: hpl\n  metric: rate\n  unit: T\n  min: 4",
        "references:\n-\n  test: hpl\n  metric: rate\n  unit: T\n  min: 4\n",
        "---\nreferences:\n- {test: hpl, metric: rate, unit: T, min: 4}\n...\n",
        OLD.replace("\n", "\r\n"),
    ],
)
def test_every_style_of_file_is_merged(old: str) -> None:
    text = merged(old, [TRIAD, COPY], FILE)
    before = {identity(e): e for e in loads(old, FILE).entries} if "references" in old else {}
    after = {identity(e): e for e in loads(text, FILE).entries}
    assert after == before | {identity(TRIAD): TRIAD, identity(COPY): COPY}
    if old.startswith("#"):
        assert text.startswith(old.splitlines()[0])


words = st.text(min_size=1)
scalars = words | st.integers(-(10**16), 10**16) | st.booleans() | st.floats(-1e9, 1e9)


@given(words, words, st.dictionaries(words, scalars, max_size=3), words, st.floats(-1e99, 1e99))
def test_what_is_written_is_read_back(
    test: str, metric: str, where: dict[str, str | int | float | bool], unit: str, bound: float
) -> None:
    if not unit.strip():
        unit = "1"
    entry = Reference(
        test=test, metric=metric, where=where, unit=unit, toolchain=test, max=bound, min=-1e99
    )
    text = merged("", [entry], FILE)
    assert loads(text, FILE).entries == [entry]
    assert merged(text, [entry], FILE) == text


def test_an_integer_of_any_length_stays_the_same_parameter() -> None:
    entry = Reference(test="t", metric="m", where={"seed": -(10**30)}, unit="s", max=1.0)
    text = merged("", [entry], FILE)
    (found,) = loads(text, FILE).entries
    assert applies(found, {"seed": -(10**30)}, "")
    assert merged(text, [entry], FILE) == text


def test_accept_writes_at_once_and_keeps_links_and_rights(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "references.yaml"
    real.write_text(OLD)
    real.chmod(0o664)
    link.symlink_to("real.yaml")
    accept(link, [TRIAD])
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o664
    assert [entry.value for entry in load(link).entries] == [None, 12345.6]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["real.yaml", "references.yaml"]


def test_accept_makes_the_file(tmp_path: Path) -> None:
    accept(tmp_path / "new" / "folder" / "references.yaml", [COPY])
    assert load(tmp_path / "new" / "folder" / "references.yaml").entries == [COPY]


def test_nothing_is_written_over_a_file_that_is_not_valid(tmp_path: Path) -> None:
    path = tmp_path / "references.yaml"
    for data in (b"references: 5\n", b"{", b"references:\n  - {test: a}\n", b"# \xff\n"):
        path.write_bytes(data)
        with pytest.raises(InvalidFiles):
            accept(path, [COPY])
        assert path.read_bytes() == data


def test_a_reference_that_is_not_valid_is_not_written(tmp_path: Path) -> None:
    bad = Reference(test="stream", metric="triad", unit="MB/s")
    with pytest.raises(InvalidFiles, match="stream triad: value: is missing"):
        accept(tmp_path / "references.yaml", [bad])
    assert not (tmp_path / "references.yaml").exists()


def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    entries = [Reference(test=f"{i:0200}", metric="m", unit="s", max=1.0) for i in range(5000)]
    with pytest.raises(UsageError, match=r"would have .* bytes"):
        accept(tmp_path / "references.yaml", entries)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        accept(tmp_path / "file" / "references.yaml", [COPY])


def test_a_failed_write_leaves_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "references.yaml"
    path.write_text(OLD)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        accept(path, [TRIAD])
    assert path.read_text() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_is_ordered_by_test_metric_and_case() -> None:
    references = [
        Reference(test=test, metric=metric, unit="1", value=1.0)
        for test, metric in (("b", "x"), ("a", "y"), ("a", "x"))
    ]
    text = merged("references: []\n", references, FILE)
    written = [(entry.test, entry.metric) for entry in loads(text, FILE).entries]
    assert written == [("a", "x"), ("a", "y"), ("b", "x")]


def test_a_reference_that_was_learned_from_several_trials_says_how_many() -> None:
    for trials in (1, 3):
        learned = Learned(trial="t", runs=9, at="2026-11-21", trials=trials)
        reference = Reference(test="a", metric="x", unit="1", value=1.0, learned=learned)
        text = merged("references: []\n", [reference], FILE)
        assert ("trials: 3" in text) == (trials == 3)
        assert loads(text, FILE).entries[0].learned == learned


def test_an_indented_comment_below_a_reference_that_is_exchanged_stays() -> None:
    old = OLD.replace("# the end\n", "    # looked at in May\n  # the end\n")
    text = merged(old, [TRIAD], FILE)
    assert text.endswith("    # looked at in May\n  # the end\n")


RACER = """
import sys
from pathlib import Path
from seatrial.judge.learning import accept
from seatrial.judge.references import Reference
sys.stdin.readline()
for number in range(10):
    name = f"{sys.argv[2]}{number}"
    accept(Path(sys.argv[1]), [Reference(test=name, metric="m", unit="1", value=1.0)])
"""


def test_what_three_people_accept_at_once_is_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "references.yaml"
    people = [
        subprocess.Popen([sys.executable, "-c", RACER, str(file), name], stdin=subprocess.PIPE)
        for name in ("alpha", "beta", "gamma")
    ]
    for person in people:
        assert person.stdin is not None
        person.stdin.write(b"\n")
        person.stdin.close()
    assert [person.wait() for person in people] == [0, 0, 0]
    assert len(load(file).entries) == 30
