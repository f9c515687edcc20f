"""Places that judge nodes: facts, lint, check nodes, nodecheck."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import numpy as np
import yaml

from seatrial.judge.log_rules import Rule
from seatrial.plugins.facts.collector import findings_in
from seatrial.plugins.facts.rules import with_shipped
from seatrial.plugins.network.matrices import findings_in as network_findings
from tests.plugins.network.test_matrices import pairs_text

from .grid import Told, bad, command, dropped, files, good, no

FOUR = ("n1", "n2", "n3", "n4")
OWN = """\
values: {least: 1}
rules:
- {name: ours, about: a., source: s, do: d., holds: test.size >= least}
- {name: same, about: a., source: s, do: d., alike: [node.kernel]}
"""


def answer(node: str, total: object = 1000, size: object = 1000) -> str:
    lines = ["node.kernel\t6.1", f"memory.total_kib\t{total}", "memory.swap_kib\t0"]
    lines.append(f"test.size\t{size}")
    return f"node\t{node}\n" + "".join(f"{line}\n" for line in [*lines, f"end\t{len(lines)}"])


def answers(*nodes: str, **of: str) -> str:
    """The answers of nodes; ``of`` has those that differ."""
    return "".join(of.get(node, answer(node)) for node in nodes or FOUR)


WHOLE = answers()
MACHINE = {
    "machine": "frost",
    "scheduler": "slurm",
    "nodes": [{"names": "n[1-4]", "cores": 4}],
    "toolchains": {"plain": {}},
}


def with_machine(folder: Path) -> Path:
    (folder / "machines").mkdir(exist_ok=True)
    (folder / "machines" / "frost.yaml").write_text(yaml.safe_dump(MACHINE))
    return folder


# ---- facts --------------------------------------------------------------------------------


def diff(folder: Path, *words: str, text: str = WHOLE, other: str | None = None) -> Told:
    files(folder, f=text)
    more = () if other is None else ("g",)
    files(folder, g=other or "")
    return command(with_machine(folder), "facts", "diff", "f", *more, "-m", "frost", *words)


@good("facts")
def _(folder: Path) -> Told:
    return diff(folder)


@bad("facts", "missing", "no trial 'none'")
def _(folder: Path) -> Told:
    return command(folder, "facts", "diff", "none")


@bad("facts", "missing", "memory.swap_kib", "(missing)")
def _(folder: Path) -> Told:
    return diff(folder, text=answers(n2=dropped(answer("n2"), "swap").replace("end\t4", "end\t3")))


@bad("facts", "empty", "f: has no facts")
def _(folder: Path) -> Told:
    return diff(folder, text="")


@bad("facts", "cut", "n4: the end of its answer is missing", "exit code 3")
def _(folder: Path) -> Told:
    return diff(folder, text=WHOLE[: WHOLE.rindex("end")])


@bad("facts", "unreadable", "f")
def _(folder: Path) -> Told:
    (folder / "f").mkdir()
    return command(folder, "facts", "diff", "f")


@bad("facts", "nan", "memory.total_kib", "nan")
def _(folder: Path) -> Told:
    return diff(folder, text=answers(n3=answer("n3", "nan")))


@bad("facts", "unit", "memory.total_kib", "1000 MiB")
def _(folder: Path) -> Told:
    sizes = {node: answer(node, "1000 GiB") for node in FOUR}
    assert diff(folder, text=answers(**sizes)).green
    return diff(folder, text=answers(**sizes | {"n3": answer("n3", "1000 MiB")}))


@bad("facts", "node", "1 node did not answer: n4", "exit code 3")
def _(folder: Path) -> Told:
    return diff(folder, text="silent\tn4\n" + answers("n1", "n2", "n3"))


@bad("facts", "node", "1 node of frost not asked: n4", "exit code 3")
def _(folder: Path) -> Told:
    return diff(folder, text=answers("n1", "n2", "n3"))


@bad("facts", "node", "n4", "and not compared", "exit code 3")
def _(folder: Path) -> Told:
    return diff(folder, text=WHOLE, other=answers("n1", "n2", "n3"))


@bad("facts", "parser", "n2: lines that are no facts are left out", "exit code 3")
def _(folder: Path) -> Told:
    odd = answer("n2").replace("end\t4", "Segmentation fault\nend\t5")
    return diff(folder, text=answers(n2=odd))


@bad("facts", "word", "--facts memroy.*: no node has such a fact")
def _(folder: Path) -> Told:
    return diff(folder, "--facts", "memroy.*")


@bad("facts", "line", "n1: 1 line of its answer are missing", "exit code 3")
def _(folder: Path) -> Told:
    return diff(folder, text="".join(dropped(answer(node), "swap") for node in FOUR))


no(
    "facts",
    stale="the trial whose facts are shown is named in the answer, and `facts history` has times",
    clock="facts of nodes are compared, not their times; rates do have times: lint",
    version="facts are texts with names; one that a version does not collect is missing",
)


# ---- lint ---------------------------------------------------------------------------------


def collected(folder: Path, text: str, tag: str = "t") -> str:
    """A trial of the machine that collected these facts; return its tag."""
    with_machine(folder)
    if not (folder / "own").exists():
        files(folder, own="node.kernel\t6.1\n")
    words = ("facts", "collect", "-m", "frost", "--read", "n[1-4]=own", "--name", tag)
    done = command(folder, *words)
    assert done.green, done.said
    (facts,) = (folder / "trials" / tag).rglob("facts.txt")
    facts.write_text(text)
    return tag


def lint(folder: Path, *words: str, text: str | bytes = WHOLE, rules: str = OWN) -> Told:
    files(folder, f=text, own_yaml=rules)
    return command(with_machine(folder), "lint", "f", "-m", "frost", "--rules", "own.yaml", *words)


@good("lint")
def _(folder: Path) -> Told:
    return lint(folder)


@bad("lint", "missing", "ours", "not judged", "exit code 3")
def _(folder: Path) -> Told:
    """No node has the fact of a person's own rule."""
    lacks = {node: dropped(answer(node), "size").replace("end\t4", "end\t3") for node in FOUR}
    return lint(folder, text=answers(**lacks))


@bad("lint", "missing", "own.yaml", "No such file")
def _(folder: Path) -> Told:
    files(folder, f=WHOLE)
    return command(folder, "lint", "f", "--rules", "own.yaml")


@bad("lint", "empty", "own.yaml:1: is empty")
def _(folder: Path) -> Told:
    return lint(folder, rules="")


@bad("lint", "cut", "n4: the end of its answer is missing", "exit code 3")
def _(folder: Path) -> Told:
    return lint(folder, text=WHOLE[: WHOLE.rindex("end")])


@bad("lint", "unreadable", "own.yaml:1: is not a regular file")
def _(folder: Path) -> Told:
    files(folder, f=WHOLE)
    (folder / "own.yaml").mkdir()
    return command(folder, "lint", "f", "--rules", "own.yaml")


@bad("lint", "nan", "ours: not judged on all nodes: n3", "exit code 3")
def _(folder: Path) -> Told:
    return lint(folder, text=answers(n3=answer("n3", size="nan")))


@bad("lint", "unit", "ours: not judged on all nodes: n3", "exit code 3")
def _(folder: Path) -> Told:
    return lint(folder, text=answers(n3=answer("n3", size="1000 GiB")))


@bad("lint", "node", "1 node did not answer: n4", "exit code 3")
def _(folder: Path) -> Told:
    return lint(folder, text="silent\tn4\n" + answers("n1", "n2", "n3"))


@bad("lint", "node", "1 of 4 nodes miss test.size", "exit code 3")
def _(folder: Path) -> Told:
    lacks = dropped(answer("n2"), "size").replace("end\t4", "end\t3")
    return lint(folder, text=answers(n2=lacks))


@bad("lint", "node", "1 of 4 nodes miss memory.swap_kib", "exit code 3")
def _(folder: Path) -> Told:
    """The condition that chooses nodes cannot be asked of one."""
    lacks = dropped(answer("n2"), "swap").replace("end\t4", "end\t3")
    rules = OWN.replace("holds:", "where: memory.swap_kib == 0, holds:")
    return lint(folder, text=answers(n2=lacks), rules=rules)


@bad("lint", "parser", "n2: lines that are no facts are left out", "exit code 3")
def _(folder: Path) -> Told:
    return lint(folder, text=WHOLE.replace("6.1\n", "6.1\n\0\1\2\n", 2).replace("\0\1\2\n", "", 1))


@bad("lint", "parser", "f: has no facts")
def _(folder: Path) -> Told:
    return lint(folder, text=bytes(range(256)))


@bad("lint", "clock", "n1: its clock was set back since the facts before", "exit code 3")
def _(folder: Path) -> Told:
    for tag, clock in (("a", 1_800_000_000), ("b", 1_799_000_000)):
        lines = f"now.clock_s\t{clock}\nnow.edac_corrected\t7\nnode.kernel\t6.1\n"
        facts = "".join(f"node\t{node}\n{lines}end\t3\n" for node in FOUR)
        collected(folder, facts, tag)
    return command(folder, "lint", "b")


@bad("lint", "word", "own.yaml", "hodls: is not a key here")
def _(folder: Path) -> Told:
    return lint(folder, rules=OWN.replace("holds", "hodls"))


@bad("lint", "word", "ours", "not judged", "exit code 3")
def _(folder: Path) -> Told:
    """A role that no node has."""
    return lint(folder, rules=OWN.replace("holds:", "roles: [compte], holds:"))


@bad("lint", "line", "1 line of its answer are missing", "exit code 3")
def _(folder: Path) -> Told:
    return lint(folder, text=answers(n2=dropped(answer("n2"), "swap")))


no(
    "lint",
    stale="the trial that is judged is named; without one it is the newest",
    version="a key that this version does not know is a fault of the file: word",
)


# ---- check nodes --------------------------------------------------------------------------


CHECK = ("check", "nodes", "-m", "frost", "--rules", "own.yaml", "--name", "t")


@click.command()
def _collected(**_: Any) -> int:
    """In place of the job that asks the nodes: the trial is there."""
    return 0


def check(folder: Path, text: str = WHOLE, rules: str = OWN) -> Told:
    """Check nodes that gave these answers. The job that asks them is not run: its trial was made
    before, and its answers were put there since it was judged."""
    files(folder, own_yaml=rules)
    collected(folder, text)
    with (
        patch("seatrial.plugins.facts.rule_acts.facts_collect", _collected),
        patch("seatrial.plugins.facts.changed.Collection.changed_since", return_value=[]),
    ):
        return command(folder, *CHECK)


@good("check nodes")
def _(folder: Path) -> Told:
    return check(folder)


@bad("check nodes", "missing", "its files of facts are gone")
def _(folder: Path) -> Told:
    files(folder, own_yaml=OWN)
    collected(folder, WHOLE)
    next((folder / "trials").rglob("facts.txt")).unlink()
    with patch("seatrial.plugins.facts.rule_acts.facts_collect", _collected):
        return command(folder, *CHECK)


@bad("check nodes", "empty", "facts.txt: has no facts")
def _(folder: Path) -> Told:
    return check(folder, "")


@bad("check nodes", "cut", "n4: the end of its answer is missing", "exit code 3")
def _(folder: Path) -> Told:
    return check(folder, WHOLE[: WHOLE.rindex("end")])


@bad("check nodes", "nan", "ours: not judged on all nodes: n3", "exit code 3")
def _(folder: Path) -> Told:
    return check(folder, answers(n3=answer("n3", size="nan")))


@bad("check nodes", "unit", "ours: not judged on all nodes: n3", "exit code 3")
def _(folder: Path) -> Told:
    return check(folder, answers(n3=answer("n3", size="1000 GiB")))


@bad("check nodes", "node", "1 node did not answer: n4")
def _(folder: Path) -> Told:
    return check(folder, "silent\tn4\n" + answers("n1", "n2", "n3"))


@bad("check nodes", "node", "1 node not asked: n4", "exit code 3")
def _(folder: Path) -> Told:
    return check(folder, answers("n1", "n2", "n3"))


@bad("check nodes", "parser", "n2: lines that are no facts are left out", "exit code 3")
def _(folder: Path) -> Told:
    return check(folder, answers(n2=answer("n2").replace("end\t4", "Bus error\nend\t5")))


@bad("check nodes", "word", "ours", "not judged", "exit code 3")
def _(folder: Path) -> Told:
    return check(folder, rules=OWN.replace("test.size", "test.sise"))


@bad("check nodes", "line", "n2: 1 line of its answer are missing", "exit code 3")
def _(folder: Path) -> Told:
    return check(folder, answers(n2=dropped(answer("n2"), "swap")))


no(
    "check nodes",
    unreadable="it makes the trial whose facts it reads: of others facts and lint are asked",
    stale="it asks the nodes now, and reads what they answered",
    clock="it judges as lint does, where clocks are looked at",
    version="it judges as lint does, by the same rules",
)


# ---- nodecheck ----------------------------------------------------------------------------

LINES = "n1 ok\nn2 ok\nn3 ok\nn4 ok\n"


def nodecheck(folder: Path, text: str | bytes | None = LINES, facts: str | None = None) -> Told:
    """Count what was found on the nodes of a run; green is a count of none."""
    if text is not None:
        files(folder, nodecheck_txt=text)
    if facts is not None:
        files(folder, facts_txt=facts)
    rule = Rule(name="ours", about="a", source="s", do="d", holds="test.size >= 1")
    rules = with_shipped([])
    found = findings_in(folder, {}, type(rules)(rules=[rule]), "n[1-4]")
    return Told(
        any(one.name == "findings" and one.value == 0 for one in found),
        "; ".join(f"{one.name} {one.value:g}" for one in found) or "no figures",
    )


@good("nodecheck")
def _(folder: Path) -> Told:
    assert nodecheck(folder).green
    return nodecheck(folder, facts=WHOLE)


@bad("nodecheck", "missing", "no figures")
def _(folder: Path) -> Told:
    return nodecheck(folder, None)


@bad("nodecheck", "empty", "no figures")
def _(folder: Path) -> Told:
    return nodecheck(folder, "")


@bad("nodecheck", "cut", "findings_of_no-answer 1", "findings_of_not-understood 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, LINES[:-3])


@bad("nodecheck", "unreadable", "no figures")
def _(folder: Path) -> Told:
    (folder / "nodecheck.txt").mkdir()
    return nodecheck(folder, None)


@bad("nodecheck", "node", "failed_node{node=n4} 1", "findings_of_no-answer 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, dropped(LINES, "n4"))


@bad("nodecheck", "node", "failed_node{node=n4} 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, facts="silent\tn4\n" + answers("n1", "n2", "n3"))


@bad("nodecheck", "node", "network_silent_nodes 1")
def _(folder: Path) -> Told:
    """A node of the run is not in the matrix that judges its network."""
    rates = np.full((4, 4), 9000.0) - np.diag([9000.0] * 4)
    files(folder, pairs_matrix=pairs_text(rates, [f"n{rank}:{rank}" for rank in range(1, 5)]))
    whole, lacking = (network_findings(folder, {}, nodes) for nodes in ("n[1-4]", "n[1-5]"))
    assert whole[-1].value == 0
    return Told(lacking[-1].value == 0, "; ".join(f"{one.name} {one.value:g}" for one in lacking))


@bad("nodecheck", "parser", "findings_of_not-understood 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, LINES.encode() + b"\0\xff\xfe segfault\n")


@bad("nodecheck", "parser", "findings_of_not-understood 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, facts=answers(n2=answer("n2").replace("end\t4", "Bus error\nend\t5")))


@bad("nodecheck", "nan", "findings_of_not-judged_ours 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, facts=answers(n3=answer("n3", size="nan")))


@bad("nodecheck", "unit", "findings_of_not-judged_ours 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, facts=answers(n3=answer("n3", size="1000 GiB")))


@bad("nodecheck", "word", "failed_node{node=n2} 2", "findings_of_not-understood 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, LINES.replace("n2 ok", "n2 DEAD gpu"))


@bad("nodecheck", "line", "failed_node{node=n2} 1")
def _(folder: Path) -> Told:
    return nodecheck(folder, dropped(LINES, "n2"))


no(
    "nodecheck",
    stale="it is in the directory of its run; that the latest run counts is the criterion's part",
    clock="it has no times",
    version="its words are those of all versions of the OLCF Test Harness; others are: word",
)
