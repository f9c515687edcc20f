"""Expand tests on a machine into cases.

expansion = expand(suite, machine, CaseSelection(keyword="stream"), faults)
faults.raise_any()
expansion.cases      # in the order of the suite, parameters and toolchains
expansion.skipped    # cases that this machine cannot run, with the reasons
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.build import BuildKeys, own_flags, patterns_of
from seatrial.model.documents import Faults, Faulty, plain_scalar
from seatrial.model.expressions import ExpressionError
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import matches, show
from seatrial.model.machine import Launcher, Machine, NodeGroup, SlurmOverride
from seatrial.model.machine_topology import topology_of
from seatrial.model.nodes import NodeFacts, facts_of, groups_with, node_names
from seatrial.model.parameters import ParameterSpace, fault_of_value
from seatrial.model.requirements import (
    OVERCOMMITTING,
    AskedOrder,
    AskedPlace,
    Fit,
    fit,
    has_partitions,
    in_partition,
    order_of_case,
    overcommits,
    refusal_of_order,
    sizes_of,
    why_crowded,
    why_never,
)
from seatrial.model.run_settings import AskedOptions, AskedSettings
from seatrial.model.suite import Suite
from seatrial.model.task_placement import (
    PIECE,
    AskedPlacement,
    launcher_of,
    misfit,
    pieces,
    quantity,
    whole,
    why_no_tasks,
)
from seatrial.model.test import Case, CaseSelection, TaskPlacement, Test
from seatrial.units import count, seconds


class Expansion(NamedTuple):
    """The cases, what was skipped: (case, reason), and what has faults and is not selected: (test
    or case, its first fault)."""

    cases: list[Case]
    skipped: list[tuple[str, str]]
    broken: list[tuple[str, str]] = []


def expand(
    suite: Suite,
    machine: Machine,
    selection: CaseSelection,
    faults: Faults,
    build_keys: BuildKeys | None = None,
    override: SlurmOverride | None = None,
    partition: str | None = None,
) -> Expansion:
    """Bind every parameter of every selected test on every toolchain. Faults of the tests that are
    selected, or may be, are added to ``faults``; others stop nothing. Raises UsageError for a
    selection that is invalid. ``override`` is what a component of a plan says to the scheduler,
    ``partition`` the one that its phase does. Without ``build_keys`` no sources are read, and the
    cases carry no build."""
    settings = _settings(suite, selection.settings)
    keep = compile_keyword(selection.keyword) if selection.keyword.strip() else _every_case
    chains = _selected_toolchains(machine, selection.toolchains)
    expansion, selected = Expansion([], [], []), set[str]()
    for name, test in _selected_tests(suite, selection.tags).items():
        try:
            options = AskedOptions(test.run, override, partition)
            binder = _Binder(test, machine, settings, selection.repeat or test.repeat, options)
            cases = list(binder.cases(chains))
        except ExpressionError as error:
            suite.fault(name, error.key or ["parameters"], str(error))
            continue
        if _tell_faulty_cases(suite, test, binder.faulty, keep, expansion):
            selected.add(name)
        elif not (cases or binder.skipped or binder.faulty):
            message = "no case is left: the parameters are empty or all excluded"
            suite.fault(name, ["parameters"], message)
        expansion.skipped.extend(
            (case.name, reason) for case, reason in binder.skipped if keep(case, test) is not False
        )
        expansion.cases.extend(
            _with_builds([case for case in cases if keep(case, test)], test, machine, build_keys)
        )
    _tell_faults(suite, _faulty_tests(suite, machine, selection) | selected, faults, expansion)
    return expansion


def _with_builds(
    cases: list[Case], test: Test, machine: Machine, build_keys: BuildKeys | None
) -> list[Case]:
    """Return the selected cases of a test, which alone need the keys of their builds."""
    if build_keys is None or not test.build:
        return cases
    return [replace(case, build=build_keys.key(test, case, machine)) for case in cases]


def _tell_faults(suite: Suite, inside: set[str], faults: Faults, expansion: Expansion) -> None:
    """Add the faults of the tests ``inside`` of a selection to ``faults``, and the first one of
    each other test to the expansion."""
    for name, told in suite.first_faults():
        if name in inside:
            faults.add_all(suite.faults[name])
        else:
            expansion.broken.append((name, told))


def _faulty_tests(suite: Suite, machine: Machine, selection: CaseSelection) -> set[str]:
    """Return the tests that have faults and may be selected."""
    names = [*machine.toolchains, *node_names(machine)] if suite.faults else []
    return {name for name in suite.faults if _may_be_selected(suite, name, selection, names)}


def _tell_faulty_cases(
    suite: Suite,
    test: Test,
    faulty: Sequence[tuple[Case, ExpressionError]],
    keep: Predicate,
    expansion: Expansion,
) -> bool:
    """Add the first fault of the selected cases of a test to it, and return whether there is one;
    tell the first of the others."""
    first: dict[bool, tuple[Case, ExpressionError]] = {}
    for case, fault in faulty:
        first.setdefault(keep(case, test) is not False, (case, fault))
    for is_selected, (case, fault) in first.items():
        about = (test.name, fault.key or ["parameters"], str(fault))
        if is_selected:
            suite.fault(*about)
        else:
            expansion.broken.append((case.name, suite.fault_text(*about)))
    return True in first


def _may_be_selected(
    suite: Suite, name: str, selection: CaseSelection, names: Sequence[str]
) -> bool:
    """Return whether a selection may take cases of a test that has faults; ``names`` are those in
    the names of cases that do not stand in its files."""
    text = "\n".join([suite.text_of(name), *names])
    if name not in suite.tests:
        test = Test(name=name, folder="", app="")
        if "inherits" in text:  # what it has from others is not known
            return True
    else:
        test = suite.tests[name]
    unread = name not in suite.tests or suite.faulty.get(name, Faulty()).has("tags")
    if not all(tag in test.tags or (unread and tag in text) for tag in selection.tags):
        return False
    return may_select(selection.keyword, _whole_test(test), test, text)


def _every_case(case: Case, test: Test) -> bool:
    return True


def _selected_tests(suite: Suite, tags: Sequence[str]) -> dict[str, Test]:
    """Return the tests that have all of the tags, without those that have faults."""
    return {
        name: test
        for name, test in suite.tests.items()
        if name not in suite.faults and set(tags) <= set(test.tags)
    }


def _settings(suite: Suite, given: Mapping[str, str]) -> dict[str, list[Scalar]]:
    known = {name for test in suite.tests.values() for name in test.parameter_names}
    for name in given:
        if name not in known and suite.tests:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"--set {name}: no test has this parameter; there are {listed}")
    return {name: _setting(name, text) for name, text in given.items()}


def _setting(name: str, text: str) -> list[Scalar]:
    """Return the values of ``--set name=text``. They are typed as plain words of a test.yaml
    are."""
    values: list[Scalar] = []
    for part in text.split(","):
        word = part.strip()
        value = plain_scalar(word)
        values.append(word if value is None else value)
        if fault := fault_of_value(word) or ("" if word else "a value is empty"):
            raise UsageError(f"--set {name}={text}: {fault}")
    return values


def _selected_toolchains(machine: Machine, patterns: Sequence[str]) -> list[str]:
    """Return the names of toolchains that match the patterns; ``default`` is the machine's
    first."""
    names = list(machine.toolchains)
    if not patterns:
        return names
    selected: list[str] = []
    for pattern in patterns:
        if pattern == "default":
            selected += names[:1]
        elif matching := [name for name in names if fnmatchcase(name, pattern)]:
            selected += matching
        else:
            listed = ", ".join(names) or "none"
            raise UsageError(f"--toolchain {pattern}: {machine.machine} has {listed}")
    return list(dict.fromkeys(selected))


class _Size(NamedTuple):
    """How large a case is, and how long it may take (s). Of a test that only builds, it is 0."""

    nodes: int = 0
    tasks: int = 0
    threads: int = 0
    walltime: float = 0.0
    at_once: int = 1
    placement: TaskPlacement = TaskPlacement()

    @property
    def tasks_per_node(self) -> int:
        return -(-self.tasks // self.nodes) if self.nodes else 0


class _Binder:
    """Binds the parameters of one test on one machine."""

    def __init__(
        self,
        test: Test,
        machine: Machine,
        settings: Mapping[str, list[Scalar]],
        repeat: int,
        asked: AskedOptions,
    ) -> None:
        self.test = test
        self.machine = machine
        self.launcher: Launcher | None = None  # of all cases of a toolchain
        self.repeat = 1 if test.only_builds else repeat
        given = test.requires.or_given  # a parameter with a default
        self.is_given = any(settings.get(given, [test.defaults.get(given)]))
        self.skipped: list[tuple[Case, str]] = []  # with the reasons
        self.faulty: list[tuple[Case, ExpressionError]] = []
        self.space = ParameterSpace.parse(test, settings)
        run = test.run
        self.nodes = quantity(run.nodes, "nodes", whole)
        self.tasks = quantity(run.tasks, "tasks", whole) if run.tasks else None
        self.tasks_per_node = quantity(run.tasks_per_node or 1, "tasks_per_node", whole)
        self.placement = AskedPlacement(run)
        self.order = AskedOrder(run)
        self.place = AskedPlace(run)
        self.topology = topology_of(machine) if self.place.any else None
        self.fills_domains = run.tasks_per_numa is not None and not (
            run.tasks or run.tasks_per_node
        )
        self.threads = quantity(run.threads_per_task, "threads_per_task", whole)
        self.walltime = quantity(run.walltime, "walltime", seconds)
        self.pieces = quantity(run.pieces, "pieces", pieces) if run.pieces is not None else None
        self.at_once = quantity(run.at_once, "at_once", whole)
        self.asked = asked
        self.settings = AskedSettings(run, machine, test.requires.space)
        self.partitioned = has_partitions(machine)

    def cases(self, chains: list[str]) -> Iterator[Case]:
        for facts in self._usable_nodes():
            for chain in self._toolchains(chains):
                names = {**facts.names, "toolchain.name": chain, **self.test.defaults}
                bindings = self.space.bindings(names)
                if self.test.run.launcher is None:  # no parameter chooses it
                    self.launcher = launcher_of(self.machine, self.test, chain, {})
                for binding in self._of_pieces(bindings, names) if self.pieces else bindings:
                    try:
                        yield from self._bind(binding, names, chain, facts)
                    except ExpressionError as error:
                        self.faulty.append((self._outline(binding, chain), error))

    def _of_pieces(
        self, bindings: Iterator[dict[str, Scalar]], names: dict[str, Any]
    ) -> Iterator[dict[str, Scalar]]:
        """Yield the binding of each piece, for a test with ``run.pieces``."""
        assert self.pieces is not None
        for binding in bindings:
            for number in range(1, self.pieces({**names, **binding}) + 1):
                yield {**binding, PIECE: number}

    def _skip(self, reason: str, case: Case | None = None) -> None:
        """Leave a case out, or without one the whole test."""
        self.skipped.append((case or _whole_test(self.test), reason))

    def _outline(self, binding: dict[str, Scalar], chain: str) -> Case:
        """Return a case with a fault, which has no size."""
        parameters = self.test.identifying(binding)
        whole = _whole_test(self.test)
        return replace(whole, id="faulty", parameters=parameters, toolchain=chain)

    def _usable_nodes(self) -> list[NodeFacts]:
        """Return the facts of the usable nodes: of all together, or kind by kind for each_node,
        because each kind has facts of its own."""
        requires = self.test.requires
        for command in requires.commands:
            if not self.is_given and shutil.which(command) is None:
                instead = f", or --set {requires.or_given}=..." if requires.or_given else ""
                self._skip(f"needs the command {command}, which is not on PATH{instead}")
                return []
        kinds = groups_with(self.machine, requires.features)
        kinds.sort(key=self._preference)  # node.* are those of the first
        facts = facts_of(self.machine, kinds)
        if facts.available < requires.nodes:
            having = f" with {', '.join(requires.features)}" if requires.features else ""
            self._skip(f"needs {requires.nodes} nodes{having}; there are {facts.available}")
            return []
        if self.test.run.scope == "each_node":
            return [facts_of(self.machine, [kind]) for kind in kinds]
        return [facts]

    def _preference(self, kind: NodeGroup) -> tuple[bool, bool]:
        """Return the sort key of a node group: groups that the test prefers come first."""
        if self.asked.partition is None:
            elsewhere = not self.asked.any_gpus and kind.partition != ""
        else:
            elsewhere = not in_partition(self.machine, kind, self.asked.partition)
        if self.asked.any_gpus:
            return elsewhere, kind.gpus == 0
        return elsewhere, self.partitioned and kind.gpus > 0

    def _toolchains(self, chains: list[str]) -> list[str]:
        """Return the toolchains of the test. A test without a build and without a wish runs on one
        toolchain only: the first that it does not skip."""
        if wanted := patterns_of(self.test):
            matching = [chain for chain in chains if matches(chain, wanted)]
            if not matching:
                self._skip(f"needs a toolchain {' or '.join(wanted)}")
            return matching
        if not self.test.is_compiled:
            first = (chain for chain in chains or [""] if not self._skips(chain))
            return list(islice(first, 1))
        if not chains:
            self._skip(
                "needs a toolchain to be built; the machine has none: "
                "write `toolchains: {gcc: {cc: gcc}}`"
            )
        return [chain for chain in chains if not self._skips(chain)]

    def _skips(self, chain: str) -> bool:
        """Return whether the test leaves a toolchain out; its reason is recorded."""
        flags = own_flags(self.test, chain)
        if flags is None or not flags.skip:
            return False
        self._skip(flags.reason, replace(_whole_test(self.test), toolchain=chain))
        return True

    def _bind(
        self, binding: dict[str, Scalar], names: dict[str, Any], chain: str, facts: NodeFacts
    ) -> Iterator[Case]:
        names = {**names, **binding}
        size = self._size(names)
        launcher = self.launcher or launcher_of(self.machine, self.test, chain, binding)
        room = self._room(names, size, facts)
        settings = self.settings.bound(names)
        parameters, run = self.test.identifying(binding), self.test.run
        pinned = facts.node_names() if self.test.run.scope == "each_node" else [""]
        for node in pinned:
            place = (self.machine.machine, chain, node)
            gpus = room.options.gpus_of_node(size.tasks_per_node)
            case = Case(
                id=case_id(self.test.name, parameters, *place, size[:3], gpus),
                test=self.test.name,
                parameters=parameters,
                toolchain=chain,
                nodes=size.nodes,
                tasks=size.tasks,
                tasks_per_node=size.tasks_per_node,
                threads=size.threads,
                walltime=size.walltime,
                node=node,
                exclusive=run.exclusive or run.oversubscribe or self.placement.needs_whole_nodes,
                repeat=self.repeat,
                job=room.options,
                settings=settings,
                placement=size.placement,
                at_once=size.at_once,
                order=self.order.bound(names),
                place=self.place.bound(names, self.topology) if self.topology else None,
            )
            if reason := self._misfit(case, names, launcher, room, facts):
                self._skip(reason, case)
            else:
                yield case

    def _size(self, names: dict[str, Any]) -> _Size:
        if self.test.only_builds:
            return _Size()
        nodes, threads = self.nodes(names), self.threads(names)
        placement = self.placement.bound(names)
        tasks = self._tasks_of(names, nodes, placement)
        return _Size(nodes, tasks, threads, self.walltime(names), self.at_once(names), placement)

    def _room(self, names: dict[str, Any], size: _Size, facts: NodeFacts) -> Fit:
        """Return how many nodes there are for a case of a size, with what it asks for."""
        job = self.asked.bound(names)
        if self.test.run.oversubscribe and self.machine.scheduler in OVERCOMMITTING:
            job = replace(job, oversubscribe=True)
        gpus = job.gpus_of_node(size.tasks_per_node)
        if self.asked.wants_missing(names):
            return Fit(0, " with GPUs", job)
        cpus = 0 if overcommits(self.machine, job) else size.tasks_per_node * size.threads
        return fit(self.machine, facts.kinds, job, gpus, cpus)

    def _misfit(
        self,
        case: Case,
        names: dict[str, Any],
        launcher: Launcher,
        room: Fit,
        facts: NodeFacts,
    ) -> str:
        """Return why this machine cannot run a case; "" if it can."""
        if reason := (
            self._unordered(case, launcher)
            or misfit(case.placement, case.tasks_per_node, case.threads, names)
            or _crowded(case, names)
            or why_crowded(self.machine, facts.kinds, case)
            or why_no_tasks(launcher, self.test.run.script, case.tasks)
            or (self._unplaced(case) if self.place.any else "")
        ):
            return reason
        if case.nodes <= room.available:
            return ""
        wanted = count(case.nodes, "node") if room.such else f"{case.nodes} nodes"
        return f"needs {wanted}{room.such}; there are {room.available}"

    def _unordered(self, case: Case, launcher: Launcher) -> str:
        """Return why the launcher refuses the rank order of a case; "" if it takes it. Raises
        ExpressionError for an order of other ranks than those of the case."""
        if not case.order:
            return ""
        order = order_of_case(case, self.test.folder)
        reason = refusal_of_order(launcher, order, sizes_of(case))
        return reason and f"{case.order}: {reason}"

    def _unplaced(self, case: Case) -> str:
        """Return why this machine has no nodes that hold the wish of a case; "" if it has."""
        if self.machine.scheduler == "local":
            return "run.place chooses nodes of a cluster; this host is one node"
        if self.topology is None:
            return "run.place needs the network of the machine: `topology` in its file tells it"
        return why_never(self.machine, self.test.requires.features, case, self.topology)

    def _tasks_of(self, names: dict[str, Any], nodes: int, placement: TaskPlacement) -> int:
        """Return the number of tasks in all."""
        if self.tasks:
            return int(self.tasks(names))
        if self.fills_domains:
            return placement.tasks_per_numa * int(names["node.numa_domains"]) * nodes
        return int(self.tasks_per_node(names)) * nodes


def _crowded(case: Case, names: Mapping[str, Any]) -> str:
    """Return why pieces of a case cannot run beside each other; "" where they can."""
    if case.at_once == 1:
        return ""
    if case.nodes > 1:
        return f"at_once: {case.at_once} goes with pieces of one node; this one has {case.nodes}"
    if case.gpus:
        return f"at_once: {case.at_once} goes with pieces without GPUs; let these run one at a time"
    cores, cores_of_node = case.tasks * case.threads, names["node.cores"]
    if case.at_once * cores > cores_of_node:
        each = count(cores, "core")
        return (
            f"at_once: {case.at_once} pieces of {each} do not fit a node, which has {cores_of_node}"
        )
    return ""


def _whole_test(test: Test) -> Case:
    """Return a case that stands for all of a test, and is none itself."""
    return Case(
        id="",
        test=test.name,
        parameters={},
        toolchain="",
        nodes=0,
        tasks=0,
        tasks_per_node=0,
        threads=0,
        walltime=0,
    )


def case_id(
    test: str,
    parameters: Mapping[str, Scalar],
    machine: str,
    toolchain: str,
    node: str,
    size: tuple[int, int, int],
    gpus: int = 0,
) -> str:
    """Return the identity of a case: 16 letters and digits of the SHA-256 of its meaning. The order
    of the parameters does not matter. ``size``: nodes, tasks, threads of each task.
    ``gpus``, of each node, count where there are some, so that other cases keep their identity."""
    bound = [f"{name}={show(parameters[name])}" for name in sorted(parameters)]
    nodes, tasks, threads = size
    shape = f"{nodes}x{tasks}x{threads}" + (f" {gpus} gpus" if gpus else "")
    text = "\n".join((test, machine, toolchain, node, shape, *bound))  # each is one line of text
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest)[:16].decode().lower()


# ---- selection: -k "stream and not touch=one", as in pytest --------------------------------------
#
# A word selects a case if, ignoring case, a word of the display name (test, parameters, toolchain)
# or of the test's application begins with it, or if it is one of the test's tags: ``openmpi`` and
# ``gcc`` select ``@gcc-openmpi``, ``pi`` does not; ``io`` selects ``io_read``, not ``congestion``.
# ``name=value`` selects by the exact value of a parameter. Words are joined by ``and``, ``or``,
# ``not`` and parentheses. Quotes keep spaces and parentheses in a word: ``flags="-O3 -g"``.


Predicate = Callable[[Case, Test], bool | None]
"""Whether a case of a test is selected; None if that depends on parameters that are not bound, as
the case stands for a whole test (its ``id`` is "")."""

_TOKEN = r"""\s*([()]|(?:"[^"]*"|'[^']*'|[^\s()])+)"""
_QUOTED = r""""([^"]*)"|'([^']*)'"""
_DEEPEST = 50


def compile_keyword(text: str) -> Predicate:
    """Return a predicate over a case and its test. Raises UsageError that names the mistake."""
    parser = _Parser(text)
    predicate = parser.either(0)
    if parser.position < len(parser.tokens):
        parser.fail(f"nothing was expected at {parser.tokens[parser.position]!r}")
    return predicate


def idle_words(text: str, cases: Sequence[Case], tests: Mapping[str, Test]) -> list[str]:
    """Return the words of a valid ``-k`` that hold for none of the cases which it selected; those
    behind a ``not`` do not count."""
    parser = _Parser(text)
    if parser.tokens:
        parser.either(0)
    words = dict.fromkeys(parser.wanted)
    return [
        word for word in words if not any(_word(word)(case, tests[case.test]) for case in cases)
    ]


def may_select(keyword: str, whole: Case, test: Test, text: str) -> bool:
    """Return whether a valid ``-k`` may select cases of a test that has faults. ``whole`` stands
    for all of it, ``test`` is what can be read of it; ``text`` has its files and the names that are
    in those of its cases. A word that is not in there selects none of them."""
    lower = text.lower()

    def word(token: str) -> Predicate:
        begin, known = _unquoted(token).partition("=")[0].lower(), _word(token)
        may_be = begin in lower or not any(c.isalpha() for c in begin)
        fixed = "=" not in token
        return lambda case, test: (fixed and known(case, test)) or (None if may_be else False)

    parser = _Parser(keyword, word)
    return not parser.tokens or parser.either(0)(whole, test) is not False


class _Parser:
    """Reads an expression. ``wanted``: its words that do not stand behind a ``not``; ``word`` makes
    the predicate of one."""

    def __init__(self, text: str, word: Callable[[str], Predicate] | None = None) -> None:
        self.text = text
        self.word = word or _word
        self.tokens: list[str] = re.findall(_TOKEN, text)
        self.position = 0
        self.wanted: list[str] = []

    def fail(self, reason: str) -> None:
        raise UsageError(
            f"-k {self.text!r}: {reason}; write e.g. -k 'stream and not (one or threads=2)'"
        )

    def take(self, *words: str) -> str | None:
        if self.position < len(self.tokens) and self.tokens[self.position] in words:
            self.position += 1
            return self.tokens[self.position - 1]
        return None

    def either(self, depth: int) -> Predicate:
        parts = [self.all_of(depth)]
        while self.take("or"):
            parts.append(self.all_of(depth))
        if len(parts) == 1:
            return parts[0]
        return lambda case, test: _known([part(case, test) for part in parts], True)

    def all_of(self, depth: int) -> Predicate:
        parts = [self.one(depth)]
        while self.take("and"):
            parts.append(self.one(depth))
        if len(parts) == 1:
            return parts[0]
        return lambda case, test: _known([part(case, test) for part in parts], False)

    def one(self, depth: int) -> Predicate:
        if depth > _DEEPEST:
            self.fail("it is nested too deeply")
        if self.take("not"):
            wanted = len(self.wanted)
            inner = self.one(depth + 1)
            del self.wanted[wanted:]
            return lambda case, test: None if (value := inner(case, test)) is None else not value
        if self.take("("):
            inner = self.either(depth + 1)
            if not self.take(")"):
                self.fail("a ) is missing")
            return inner
        if self.position >= len(self.tokens) or self.tokens[self.position] in (")", "and", "or"):
            self.fail("a word is missing")
        word = self.tokens[self.position]
        self.position += 1
        self.wanted.append(word)
        return self.word(word)


def _known(parts: Sequence[bool | None], decisive: bool) -> bool | None:
    """Return ``decisive`` if a part is that, None if a part is not known, else its opposite."""
    return decisive if decisive in parts else None if None in parts else not decisive


def _word(token: str) -> Predicate:
    word = _unquoted(token)
    name, equals, value = word.partition("=")
    if equals:

        def has_value(case: Case, test: Test) -> bool | None:
            if not case.id and name in test.parameters:
                return None
            bound = test.bound(case.parameters)
            return name in bound and show(bound[name]) == value

        return has_value
    begins = _beginning(word)
    return lambda case, test: (
        word in test.tags
        or begins.search(case.name) is not None
        or begins.search(test.app) is not None
    )


def _unquoted(token: str) -> str:
    return re.sub(_QUOTED, lambda match: match[1] or match[2] or "", token)


def _beginning(word: str) -> re.Pattern[str]:
    """Return a pattern that finds a text where a word begins with it, whatever its case."""
    inside = r"(?<![^\W_])" if word[:1].isalnum() else ""
    return re.compile(inside + re.escape(word), re.IGNORECASE)
