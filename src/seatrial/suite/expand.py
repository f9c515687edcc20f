"""Expand tests on a machine into cases.

expansion = expand(suite, machine, CaseSelection(keyword="stream"), faults)
faults.raise_any()
expansion.cases      # in the order of the suite, parameters and toolchains
expansion.skipped    # cases that this machine cannot run, with the reasons
"""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import msgspec

from seatrial.documents import Faults, plain_scalar
from seatrial.errors import UsageError
from seatrial.file_model import Scalar
from seatrial.machine.facts import NodeFacts, facts_of, facts_of_each_kind
from seatrial.machine.model import Machine
from seatrial.suite.build_key import BuildKeys
from seatrial.suite.expressions import ExpressionError, compile_expression
from seatrial.suite.load import Suite
from seatrial.suite.model import Case, CaseSelection, Test, show
from seatrial.suite.parameters import ParameterSpace, fault_of_value
from seatrial.suite.select import compile_keyword
from seatrial.units import seconds


class Expansion(NamedTuple):
    """The cases, and what was skipped: (case, reason)."""

    cases: list[Case]
    skipped: list[tuple[str, str]]


def expand(
    suite: Suite,
    machine: Machine,
    selection: CaseSelection,
    faults: Faults,
    build_keys: BuildKeys | None = None,
) -> Expansion:
    """Bind every parameter of every selected test on every toolchain. Faults of the tests are added
    to ``faults``. Raises UsageError for a selection that is invalid. Without ``build_keys`` no
    sources are read, and the cases carry no build."""
    settings = _settings(suite, selection.settings)
    keep = compile_keyword(selection.keyword) if selection.keyword.strip() else None
    chains = _selected_toolchains(machine, selection.toolchains)
    expansion = Expansion([], [])
    for name, test in suite.tests.items():
        if name in suite.faulty or not set(selection.tags) <= set(test.tags):
            continue
        try:
            binder = _Binder(test, machine, settings)
            found = list(binder.cases(chains, expansion.skipped))
        except ExpressionError as error:
            suite.fault(faults, name, error.key or ["parameters"], str(error))
            continue
        if not found and not binder.skipped:
            message = "no case is left: the parameters are empty or all excluded"
            suite.fault(faults, name, ["parameters"], message)
        tags = frozenset(test.tags)
        for case in found:
            if keep is None or keep(case, tags):
                expansion.cases.append(_finished(case, test, machine, selection, build_keys))
    return expansion


def _finished(
    case: Case, test: Test, machine: Machine, selection: CaseSelection, build_keys: BuildKeys | None
) -> Case:
    """Return the case with its repeats and the key of its build, which only selected cases need."""
    key = build_keys.key(test, case, machine) if build_keys and test.build else ""
    repeat = selection.repeat or test.repeat
    if not key and repeat == case.repeat:
        return case
    return msgspec.structs.replace(case, repeat=repeat, build=key)


def _settings(suite: Suite, given: Mapping[str, str]) -> dict[str, list[Scalar]]:
    known = {name for test in suite.tests.values() for name in test.parameters}
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
        found = names[:1] if pattern == "default" else [n for n in names if fnmatchcase(n, pattern)]
        if not found and not (pattern == "default" and not names):
            listed = ", ".join(names) or "none"
            raise UsageError(f"--toolchain {pattern}: {machine.machine} has {listed}")
        selected += [name for name in found if name not in selected]
    return selected


class _Binder:
    """Binds the parameters of one test on one machine."""

    def __init__(self, test: Test, machine: Machine, settings: Mapping[str, list[Scalar]]) -> None:
        self.test = test
        self.machine = machine
        self.skipped = False
        self.space = ParameterSpace.of(test, settings)
        run = test.run
        self.nodes = _count(run.nodes, "nodes")
        self.tasks = _count(run.tasks, "tasks")
        self.tasks_per_node = _count(run.tasks_per_node, "tasks_per_node")
        self.threads = _count(run.threads_per_task, "threads_per_task")
        self.walltime = _walltime(run.walltime)

    def cases(self, chains: list[str], skipped: list[tuple[str, str]]) -> Iterator[Case]:
        def skip(what: str, why: str) -> None:
            self.skipped = True
            skipped.append((what, why))

        for facts in self._usable_nodes(skip):
            for chain in self._toolchains(chains, skip):
                names: dict[str, Any] = {**facts.names, "toolchain.name": chain}
                for binding in self.space.bindings(names):
                    yield from self._bind(binding, names, chain, facts, skip)

    def _usable_nodes(self, skip: Any) -> list[NodeFacts]:
        """Return the facts of the usable nodes: of all together, or kind by kind for each_node,
        because each kind has facts of its own."""
        requires = self.test.requires
        for command in requires.commands:
            if shutil.which(command) is None:
                skip(self.test.name, f"needs the command {command}, which is not on PATH")
                return []
        facts = facts_of(self.machine, requires.features)
        if facts.available < requires.nodes:
            having = f" with {', '.join(requires.features)}" if requires.features else ""
            skip(
                self.test.name, f"needs {requires.nodes} nodes{having}; there are {facts.available}"
            )
            return []
        if self.test.run.scope == "each_node":
            return facts_of_each_kind(self.machine, requires.features)
        return [facts]

    def _toolchains(self, chains: list[str], skip: Any) -> list[str]:
        """Return the toolchains of the test. A test without a build and without a wish runs on the
        default toolchain only."""
        wanted = self.test.toolchains
        if wanted:
            found = [c for c in chains if any(fnmatchcase(c, pattern) for pattern in wanted)]
            if not found:
                skip(self.test.name, f"needs a toolchain {' or '.join(wanted)}")
            return found
        if self.test.build is None or self.test.build.prebuilt:
            return chains[:1] or [""]
        if not chains:
            skip(self.test.name, "needs a toolchain to be built; the machine has none")
        return chains

    def _bind(
        self,
        binding: dict[str, Scalar],
        names: dict[str, Any],
        chain: str,
        facts: NodeFacts,
        skip: Any,
    ) -> Iterator[Case]:
        names = {**names, **binding}
        nodes = self.nodes(names)
        threads = self.threads(names)
        tasks, per_node = self._tasks(names, nodes)
        walltime = self.walltime(names)
        pinned = facts.node_names() if self.test.run.scope == "each_node" else [""]
        for node in pinned:
            place = (self.machine.machine, chain, node)
            case = Case(
                id=case_id(self.test.name, binding, *place, (nodes, tasks, threads)),
                test=self.test.name,
                parameters=binding,
                toolchain=chain,
                nodes=nodes,
                tasks=tasks,
                tasks_per_node=per_node,
                threads=threads,
                walltime=walltime,
                node=node,
                exclusive=self.test.run.exclusive,
                repeat=self.test.repeat,
            )
            if nodes > facts.available:
                skip(case.name, f"needs {nodes} nodes; there are {facts.available}")
            else:
                yield case

    def _tasks(self, names: dict[str, Any], nodes: int) -> tuple[int, int]:
        if self.tasks is not None:
            tasks = self.tasks(names)
            return tasks, -(-tasks // nodes)
        per_node = self.tasks_per_node(names) if self.tasks_per_node else 1
        return per_node * nodes, per_node


def case_id(
    test: str,
    parameters: Mapping[str, Scalar],
    machine: str,
    toolchain: str,
    node: str,
    size: tuple[int, int, int],
) -> str:
    """Return the identity of a case: 16 letters and digits of the SHA-256 of its meaning. The order
    of the parameters does not matter. ``size``: nodes, tasks, threads of each task."""
    bound = [f"{name}={show(parameters[name])}" for name in sorted(parameters)]
    shape = "x".join(map(str, size))
    text = "\n".join((test, machine, toolchain, node, shape, *bound))  # each is one line of text
    return base64.b32encode(hashlib.sha256(text.encode()).digest()[:10]).decode().lower()


Quantity = Callable[[Mapping[str, Any]], Any]


def _count(written: int | str | None, key: str) -> Any:
    """Return a function from names to a count of at least 1; None if there is no expression."""
    if not isinstance(written, str):
        return None if written is None else lambda names: written

    def count(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ValueError("it must be a whole number")
        if value < 1:
            raise ValueError("it must be at least 1")
        return int(value)

    return _evaluated(written, key, count)


def _walltime(written: int | float | str) -> Quantity:
    try:
        fixed = seconds(written)
        return lambda names: fixed
    except ValueError:
        return _evaluated(str(written), "walltime", seconds)


def _evaluated(written: str, key: str, convert: Callable[[Any], Any]) -> Quantity:
    """Return a function from names to the converted value of an expression. It raises
    ExpressionError with the key of ``run`` that holds the expression."""
    expression = compile_expression(written)

    def quantity(names: Mapping[str, Any]) -> Any:
        try:
            value = expression.evaluate(names)
        except ExpressionError as error:
            raise ExpressionError(str(error), "run", key) from None
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            message = f"{written!r} gives {_said(value)}: {error}"
            raise ExpressionError(message, "run", key) from None

    return quantity


def _said(value: Any) -> str:
    return "a list" if isinstance(value, list) else repr(value)
