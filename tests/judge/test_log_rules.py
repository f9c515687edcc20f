"""The log rules that ship, and a machine's own in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.judge.log_rules import log_rules_for, shipped_log_rules
from seatrial.judge.script_check import CauseSearch
from seatrial.model.failures import LogRule

RULES = shipped_log_rules()
SEARCH = CauseSearch(RULES)
GOLDEN = Path(__file__).parent / "outputs" / "data"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_finds_its_example_before_any_other_rule_does(
    rule: LogRule, tmp_path: Path
) -> None:
    (tmp_path / "stderr").write_text(f"starting\n{rule.example}\nover\n")
    found = SEARCH.of_run(tmp_path, {}, 1)
    assert rule.example, "each shipped rule has an example"
    assert (found.text, found.line) == (rule.cause, f"stderr: {rule.example}")
    assert rule.source in found.advice


def test_lines_of_failed_jobs_have_their_cause_and_those_of_good_ones_none(tmp_path: Path) -> None:
    lines = (Path(__file__).parent / "data/causes.txt").read_text().splitlines()
    pairs = [line.split("|", 1) for line in lines if not line.startswith("#")]
    found = []
    for _, text in pairs:
        (tmp_path / "stderr").write_text(f"starting\n{text}\nover\n")
        found.append([SEARCH.of_run(tmp_path, {}, 1).text, text])
    assert found == pairs


def test_a_cause_that_is_told_over_two_lines(tmp_path: Path) -> None:
    """As mpirun of Open MPI 4.1.4 and 5.0 ends with more tasks than the node has cores."""
    text = (
        "-----\nYour job has requested more processes than the ppr for\nthis topology can support:"
    )
    (tmp_path / "stderr").write_text(f"{text}\n\n  App: hostname\n  Number of procs:  4\n")
    found = SEARCH.of_run(tmp_path, {}, 213)
    assert found.text == "the nodes have fewer cores, NUMA domains or sockets than mpirun was told"
    assert found.line == "stderr: Your job has requested more processes than the ppr for"
    assert "Compare `cores`, `numa_domains` and `sockets` in the machine's file" in found.advice


def test_they_are_many_and_of_all_layers() -> None:
    assert len(RULES) >= 30
    assert len({rule.name for rule in RULES}) == len(RULES), "names are of all files"
    told = " ".join(rule.source for rule in RULES)
    for layer in ("kernel", "NVIDIA", "Slurm", "Open MPI", "MPICH", "libfabric", "Lustre", "glibc"):
        assert layer in told


def test_no_rule_sees_a_cause_in_the_output_of_good_runs(tmp_path: Path) -> None:
    files = [path for path in GOLDEN.rglob("*") if path.is_file()]
    assert files
    for path in files:
        (tmp_path / "stdout").write_bytes(path.read_bytes())
        assert not SEARCH.of_run(tmp_path, {}, 1).text, path


def test_a_rule_of_a_machine_comes_first_and_replaces_the_shipped_one_of_its_name() -> None:
    of_site = LogRule(name="quota", pattern="EDQUOT", cause="q", advice="a", source="we")
    rules = log_rules_for([of_site])
    assert rules[0] == of_site
    assert len(rules) == len(RULES)
