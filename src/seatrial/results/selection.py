"""The sides of a comparison: which trials, and which cases and runs of them.

    side = gather(store, parse_side("nightly-*:toolchain=gcc*,since=2026-05-01"))
    side.cases

A side is written as a trial (a tag, a unique beginning of one, a path), a pattern of tags, or `@`
for all trials; behind `:` (behind `@` at once) stand conditions, joined by commas. Rehearsed trials
answer where one is named, or with the condition `rehearsed=yes`, which leaves out measured ones.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.errors import TrialError, UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_paths import TrialPaths
from seatrial.grouping import grouped
from seatrial.model import machine as model
from seatrial.model import nodes as layouts
from seatrial.model import requirements
from seatrial.model.file_model import typed
from seatrial.model.identifiers import case_name, is_like, is_pattern
from seatrial.model.node_set import unfold, unfold_or_empty
from seatrial.model.nodes import NodeLayout
from seatrial.results.case_figures import (
    NUMBERS,
    Apart,
    CaseRuns,
    by_case,
    distinguishing,
    parameters_of,
    shown,
)
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.units import count, moment_of

# What a condition may ask for, besides parameters, and what it means.
KEYS: dict[str, str] = {
    "machine": "machine, by name or pattern",
    "toolchain": "toolchain, by name or pattern",
    "test": "test: a part of its name, or a pattern",
    "tag": "a tag of the test",
    "stage": "`alone` or `full`, of components that run isolated, then full",
    "plan": "plan, by name or pattern",
    "component": "component of a plan, by name or pattern",
    "phase": "phase of a plan, by name or pattern",
    "since": "runs created since: `2h`, `3d`, `2026-11-20`, `2026-11-20T14:03`",
    "until": "runs created before",
    "rehearsed": "`yes`: of rehearsals, and of these alone",
    "given": "`yes`: figures that others gave, and these alone",
}

_TRIAL_KEYS = ("machine", "plan", "component", "phase")
_YES_OR_NO = ("rehearsed", "given")
_PARAMETER = "param."
_PIECE = re.compile(r'([^=,"]+)=("[^"]*"|[^,"]*)(?:,|$)')
_EXAMPLE = "write e.g. nightly, nightly:toolchain=gcc*, or @machine=frost,since=2026-05-01"


class SideSelection(Struct, frozen=True):
    """A side as it was written: ``trial`` is "" for all; ``conditions`` by their keys."""

    text: str
    trial: str
    conditions: dict[str, str]


class Side(Struct, frozen=True):
    """One side: its trials, oldest first, and its cases; ``text`` is what it was asked by.
    ``unlike`` tells of runs on nodes that differ."""

    text: str
    trials: list[TrialRow]
    cases: list[CaseRuns]
    conditions: dict[str, str] = {}
    unlike: list[str] = []

    @property
    def given(self) -> bool:
        """Whether figures that somebody else gave are among its own."""
        return any(trial.given for trial in self.trials)

    @property
    def rehearsed(self) -> bool:
        """Whether figures of a rehearsal are among its own."""
        return any(trial.rehearsed for trial in self.trials)

    def all_of(self, name: str) -> set[str]:
        """The values that an attribute has among the cases."""
        return {member.attribute(name) for member in self.cases}


def cases_of(sides: Iterable[Side]) -> list[CaseRuns]:
    """Return the cases of sides, those of the first one first."""
    return [case for side in sides for case in side.cases]


def trials_of(sides: Sequence[Side]) -> list[TrialRow]:
    """Return the trials of sides, each once."""
    return list({trial.path: trial for side in sides for trial in side.trials}.values())


class Difference(Struct, frozen=True):
    """One thing that is not the same: of what, which part, and how it is on each side. Where the
    sides cannot be shown in a few words, ``first`` and ``second`` are ""."""

    subject: str
    what: str
    first: str = ""
    second: str = ""


# ---- writing ------------------------------------------------------------------------------


def parse_side(text: str) -> SideSelection:
    """A side as a person writes it. Raises UsageError that says what to write."""
    written = text.strip()
    if written.startswith("@"):
        trial, rest = "", written[1:]
    else:
        trial, colon, rest = written.partition(":")
        if not trial or (colon and not rest):
            raise UsageError(f"{text!r} names no trial or no condition; {_EXAMPLE}")
    return SideSelection(written, trial, _conditions(text, rest))


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a list, written as NAME,NAME; each once."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _conditions(text: str, rest: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(rest):
        piece = _PIECE.match(rest, at)
        name = piece[1].strip() if piece else ""
        if piece is None or not name:
            raise UsageError(f"{text!r}: {rest[at:]!r} is no NAME=VALUE; {_EXAMPLE}")
        if name in found:
            raise UsageError(f"{text!r}: {name} is there twice; use a pattern such as {name}=a*")
        found[name] = piece[2].strip().strip('"')
        at = piece.end()
    return found


# ---- gathering ----------------------------------------------------------------------------


def gather(
    store: Store, selection: SideSelection, tests: Sequence[str] = (), *, given: bool = False
) -> Side:
    """The cases of a side with what they measured; of ``tests`` (parts of names, or patterns) alone
    where some are given. With ``given`` they may be figures that somebody else gave. Raises
    UsageError where nothing is selected."""
    conditions = selection.conditions
    trials = _trials(store, selection)
    if not given and any(trial.given for trial in trials):
        raise UsageError(
            f"{selection.text}: its figures were given, and never measured; `seatrial compare` "
            "sets them beside measured ones"
        )
    kept = _fitting(_members(store, selection, trials), selection, trials, tests)
    trials = [trial for trial in trials if trial.tag in {one.trial for one in kept}]
    unlike = kinds_in_words(store, trials, kept)
    return Side(selection.text, trials, kept, conditions, unlike)


def _fitting(
    members: Sequence[CaseRuns],
    selection: SideSelection,
    trials: list[TrialRow],
    tests: Sequence[str],
) -> list[CaseRuns]:
    """Return the cases that fit the conditions of a side. Raises UsageError if none does."""
    known = set(parameters_of(members))
    labels = _labels(selection, trials, known)
    if labels.wanted:
        members = [one for one in members if one.trial in labels.trials]
    elsewhere = (*_TRIAL_KEYS, "since", "until", *_YES_OR_NO, *labels.wanted)
    matches = [
        _match(selection, name, value, known)
        for name, value in selection.conditions.items()
        if name not in elsewhere
    ]
    matches += [_of_machine(selection.conditions.get("machine", "*")), _of_tests(tests)]
    kept = [one for one in members if all(match(one) for match in matches)]
    if not kept:
        raise UsageError(f"{selection.text}: no case of it fits; {_what_there_is(members)}")
    return kept


def _of_machine(pattern: str) -> Callable[[CaseRuns], bool]:
    """Return what tells whether a case is of a machine: trials of given figures have cases of
    several."""
    return lambda one: not one.given or fnmatchcase(one.machine, pattern)


def _of_tests(patterns: Sequence[str]) -> Callable[[CaseRuns], bool]:
    """Return what tells whether a case is of one of these tests; of any where there are none."""
    return lambda one: not patterns or any(is_like(one.test, each) for each in patterns)


def _members(store: Store, selection: SideSelection, trials: Sequence[TrialRow]) -> list[CaseRuns]:
    """Return the cases of trials; where a time is given, those that ran in it. Raises UsageError
    for a time in which nothing ran."""
    since, until = (_time(selection, key) for key in ("since", "until"))
    members = by_case(store, trials, since, until)
    if not (since or until):
        return members
    if ran := [one for one in members if one.runs or one.excluded]:
        return ran
    raise UsageError(
        f"{selection.text}: no run of it was created in that time; see `seatrial runs`"
    )


class _Labels(Struct, frozen=True):
    """The conditions that are labels, and the tags of the trials that have them."""

    wanted: list[str]
    trials: set[str]


def _labels(selection: SideSelection, trials: list[TrialRow], known: set[str]) -> _Labels:
    """Return the conditions that are no keys and no parameters, if some trial has such a label, and
    the trials that fit. The labels are in the trials' records, which are read for that alone."""
    others = {*KEYS, *NUMBERS, *known}
    names = [n for n in selection.conditions if n.removeprefix(_PARAMETER) not in others]
    if not names:
        return _Labels([], set())
    labels_of = {trial.tag: _labels_of(trial) for trial in trials}
    wanted = [name for name in names if any(name in labels for labels in labels_of.values())]
    patterns = {name: selection.conditions[name] for name in wanted}
    return _Labels(wanted, {tag for tag, own in labels_of.items() if _has_labels(own, patterns)})


def _has_labels(labels: Mapping[str, str], patterns: Mapping[str, str]) -> bool:
    return all(
        name in labels and fnmatchcase(labels[name], text) for name, text in patterns.items()
    )


def _labels_of(trial: TrialRow) -> dict[str, str]:
    try:
        return TrialFolder(Path(trial.path)).record().asked.labels
    except TrialError:
        return {}


def _time(selection: SideSelection, key: str) -> int:
    if key not in selection.conditions:
        return 0
    try:
        return moment_of(selection.conditions[key])
    except ValueError as error:
        raise UsageError(f"{selection.text}: {key}: {error}") from None


def _trials(store: Store, selection: SideSelection) -> list[TrialRow]:
    conditions, wanted = selection.conditions, selection.trial
    for key in _YES_OR_NO:
        if (answer := conditions.get(key, "")) not in ("", "yes", "no"):
            raise UsageError(f"{selection.text}: {key} is yes or no, not {answer!r}")
    if wanted and not is_pattern(wanted):
        found = [_trial(store, selection)]
    else:
        found = _trials_like(store, wanted or "*", conditions)
    for key in _TRIAL_KEYS:
        pattern = conditions.get(key, "*")
        found = [one for one in found if _has(one, key, pattern)]
    if not found:
        raise UsageError(f"{selection.text}: no trial fits; see `seatrial trials`")
    return found[::-1]


def _has(trial: TrialRow, key: str, pattern: str) -> bool:
    """Return whether a trial fits a condition. Figures that were given are of several systems."""
    return fnmatchcase(getattr(trial, key), pattern) or (key == "machine" and trial.given)


def _trials_like(store: Store, tag: str, conditions: Mapping[str, str]) -> list[TrialRow]:
    """Return the trials whose tags match a pattern, of the kind that conditions ask for."""
    rehearsed, given = (conditions.get(key, "") == "yes" for key in _YES_OR_NO)
    return [
        trial
        for trial in queries.trials(store)
        if (trial.rehearsed, trial.given) == (rehearsed, given) and fnmatchcase(trial.tag, tag)
    ]


def _trial(store: Store, selection: SideSelection) -> TrialRow:
    """Return the trial that a side names. Raises UsageError if it is not of the kind asked for."""
    trial = queries.trial(store, selection.trial)
    asked = selection.conditions.get("rehearsed", "")
    given = selection.conditions.get("given", "")
    fault = ""
    if given and trial.given != (given == "yes"):
        fault = "was given" if trial.given else "was not given"
    elif asked and trial.rehearsed != (asked == "yes"):
        fault = "is a rehearsal" if trial.rehearsed else "is no rehearsal"
    if fault:
        raise UsageError(f"{selection.text}: {trial.tag} {fault}; leave the condition out")
    return trial


def _match(
    selection: SideSelection,
    name: str,
    value: str,
    known: set[str],
) -> Callable[[CaseRuns], bool]:
    if name == "tag":
        return lambda one: f"\n{value}\n" in one.tags
    if name == "test":
        return lambda one: is_like(one.test, value)
    plain = name.removeprefix(_PARAMETER)
    if plain in known and (name != plain or name not in KEYS):
        return lambda one: plain in one.parameters and fnmatchcase(one.parameters[plain], value)
    if name in ("toolchain", "stage", *NUMBERS):
        return lambda one: fnmatchcase(one.attribute(name), value)
    parameters = ", ".join(sorted(known)) or "none"
    raise UsageError(
        f"{selection.text}: {name!r} is no condition ({', '.join([*KEYS, *NUMBERS])}), no "
        f"label of its trials and no parameter of its cases ({parameters})"
    )


def is_named(metric: str, patterns: Sequence[str]) -> bool:
    """Whether a metric has one of these names, which may be patterns."""
    return any(metric == pattern or fnmatchcase(metric, pattern) for pattern in patterns)


def _what_there_is(members: Sequence[CaseRuns]) -> str:
    """What the cases of a side are, where a condition left none."""
    texts = []
    for key in ("test", "toolchain", "stage"):
        values = sorted({one.attribute(key) for one in members} - {""})
        if values:
            texts.append(f"{key} {', '.join(values[:5])}{', ...' if len(values) > 5 else ''}")
    return f"there are {'; '.join(texts)}" if texts else "its trials have no case"


# ---- pairing -------------------------------------------------------------------------------------
#
# Which cases of two sides are the same, and so are one row of a comparison.
#
#     paired = pair(base, other)
#     paired.across             # ["toolchain"]
#     paired.pairs              # each with its name, and its cases and figures on either side
#
# Cases are the same where test, parameters, toolchain, machine and stage are; a parameter at its
# default counts where another case of the test has another value of it. What a side was chosen by
# is left out of that where each side has one value of it, and not the same. Cases that differ in
# their node alone, and a case of several trials, are one group.


CROSSED = ("machine", "toolchain", "stage")

Key = tuple[str, ...]


class CasePair(NamedTuple):
    """What is one row of a comparison, as people read it, and its cases on either side."""

    name: str
    parameters: dict[str, str]
    first: list[CaseRuns]
    second: list[CaseRuns]


class Paired(Struct, frozen=True):
    """The cases of two sides. ``across`` are the attributes that they were paired across."""

    across: list[str]
    pairs: list[CasePair]


def pair(first: Side, second: Side, across: Sequence[str] = (), each_node: bool = False) -> Paired:
    """Pair the cases of two sides, also ``across`` parameters that may differ; with ``each_node``
    each node by itself. Raises UsageError where a side has no run that is over, or nothing is on
    both sides."""
    _require_parameters(across, first, second)
    crossed = list(dict.fromkeys([*_crossed(first, second), *across]))
    apart = distinguishing(cases_of((first, second)))
    one, other = (_groups(side, crossed, apart, each_node) for side in (first, second))
    for side, found in ((first, one), (second, other)):
        if not found:
            raise UsageError(f"{side.text}: no run of it is over yet; see `seatrial runs`")
    if not one.keys() & other.keys():
        raise UsageError(_nothing_shared(first, second, crossed))
    attributes = [
        name
        for name in CROSSED
        if name not in crossed and len(first.all_of(name) | second.all_of(name)) > 1
    ]
    pairs = []
    for key in dict.fromkeys([*one, *other]):
        named = _name((one.get(key) or other[key])[0], crossed, apart, attributes, each_node)
        pairs.append(CasePair(*named, one.get(key, []), other.get(key, [])))
    return Paired(crossed, pairs)


def _require_parameters(names: Sequence[str], first: Side, second: Side) -> None:
    known = parameters_of(cases_of((first, second)))
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"--across {name}: no case has this parameter; there are {listed}")


def _crossed(first: Side, second: Side) -> list[str]:
    """What each side has one value of, and not the same: the sides are chosen by it."""
    names = [name.removeprefix("param.") for name in (*first.conditions, *second.conditions)]
    return [
        name
        for name in dict.fromkeys([*CROSSED, *names])
        if name not in ("test", "tag")
        and len(first.all_of(name)) == len(second.all_of(name)) == 1
        and first.all_of(name) != second.all_of(name)
    ]


def _bound(member: CaseRuns, crossed: Sequence[str], apart: Apart) -> dict[str, str]:
    """Return the parameters that tell a case from the others."""
    return {name: value for name, value in shown(member, apart).items() if name not in crossed}


def _key(member: CaseRuns, crossed: Sequence[str], apart: Apart, each_node: bool) -> Key:
    fixed = [f"{name}={getattr(member, name)}" for name in CROSSED if name not in crossed]
    own = sorted(f"{n}={v}" for n, v in _bound(member, crossed, apart).items())
    return (member.test, member.node if each_node else "", *fixed, *own)


def _groups(
    side: Side, crossed: Sequence[str], apart: Apart, each_node: bool
) -> dict[Key, list[CaseRuns]]:
    """Return the cases that are one row together, where a run of them is over."""
    groups = grouped(side.cases, lambda case: _key(case, crossed, apart, each_node))
    return {
        key: cases
        for key, cases in groups.items()
        if any(case.values or case.excluded for case in cases)
    }


def _name(
    one: CaseRuns, crossed: Sequence[str], apart: Apart, named: Sequence[str], each_node: bool
) -> tuple[str, dict[str, str]]:
    """A case as people read it, and its parameters; attributes that not all share are ``named``."""
    bound = _bound(one, crossed, apart)
    toolchain, stage = (getattr(one, n) if n in named else "" for n in ("toolchain", "stage"))
    name = case_name(one.test, bound, toolchain, one.node if each_node else "", stage)
    if "machine" in named:
        name += f" on {one.machine}"
    return name, bound


def _listed(names: Set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _nothing_shared(first: Side, second: Side, crossed: Sequence[str]) -> str:
    """Why no case is on both sides, as far as can be seen."""
    named = ((name, first.all_of(name), second.all_of(name)) for name in (*CROSSED, "test"))
    texts = [
        f"{name} {_listed(one)} and {_listed(other)}"
        for name, one, other in named
        if name not in crossed and not one & other
    ]
    reason = "; ".join(texts) or "their parameters differ; see --across"
    remedy = ""
    if several := next((s for s in (first, second) if len(s.all_of("machine")) > 1), None):
        name = min(several.all_of("machine"))
        remedy = f"; choose one machine, such as '{several.text}:machine={name}'"
    elif any(text.startswith(("toolchain", "machine")) for text in texts):
        remedy = "; choose one of each, such as A:toolchain=gcc B:toolchain=clang"
    return f"no case is on both {first.text} and {second.text}: {reason}{remedy}"


# ---- nodes that differ ---------------------------------------------------------------------------
#
# Runs of a side that were on nodes that differ: spread over both kinds, or on one or the other.
#
# kinds_in_words(store, trials, cases)
# # ["t: 3 runs were spread over nodes that differ (n[001-004]: 2 cores ...; n[005-006]: ...)"]


MAX_DESCRIBED_TRIALS = 100  # of a side, whose machines are looked at: the newest


_OF_LAYOUT = ("cores", "sockets", "numa_domains", "threads_per_core", "layout")


class _Nodes(Struct):
    nodes: list[dict[str, Any]] = []


class _Described(Struct):
    """The member of a trial's record."""

    machine: _Nodes


class _Kinds(Struct, frozen=True):
    """The layouts of a machine's nodes by their names, and what they are in words."""

    of: "dict[str, NodeLayout]"
    words: str


def kinds_in_words(
    store: Store, trials: Sequence[TrialRow], cases: Sequence[CaseRuns]
) -> list[str]:
    """Return a sentence for each trial with runs that count and were on nodes that differ."""
    sentences = []
    for trial in trials[-MAX_DESCRIBED_TRIALS:]:
        kinds = _kinds_of(trial)
        if kinds is None:
            continue
        nodes = dict(store.rows("SELECT id, nodes FROM runs WHERE trial = ?", (trial.row,)))
        spread = 0
        by_case: dict[tuple[str, ...], set[frozenset[Any]]] = {}
        for one in cases:
            if one.trial != trial.tag:
                continue
            key = (
                one.test,
                one.toolchain,
                one.stage,
                *(f"{n}={v}" for n, v in one.key_parameters.items()),
            )
            for run in one.runs:
                found = frozenset(
                    kinds.of[name] for name in unfold_or_empty(nodes[run]) if name in kinds.of
                )
                spread += len(found) > 1
                by_case.setdefault(key, set()).add(found)
        mixed = sum(len(each - {frozenset()}) > 1 for each in by_case.values())
        if told := _told(spread, mixed):
            sentences.append(f"{trial.tag}: {told} nodes that differ ({kinds.words})")
    return sentences


def _kinds_of(trial: TrialRow) -> _Kinds | None:
    """Return the kinds of nodes of a trial's machine; None where all are alike, or it cannot be
    read."""
    try:
        written = TrialPaths(Path(trial.path)).record_as(_Described).machine.nodes
    except TrialError:
        return None
    if len({msgspec.json.encode([each.get(key) for key in _OF_LAYOUT]) for each in written}) < 2:
        return None
    kinds = typed(written, list[model.NodeGroup])
    if not (words := requirements.kinds_text(kinds)):
        return None
    return _Kinds({n: layouts.layout_of(kind) for kind in kinds for n in unfold(kind.names)}, words)


def _told(spread: int, mixed: int) -> str:
    sentences = []
    if spread:
        sentences.append(f"{count(spread, 'run')} {'was' if spread == 1 else 'were'} spread over")
    if mixed:
        sentences.append(f"{count(mixed, 'case')} ran on one or the other of")
    return " and ".join(sentences)
