"""What the shape of a ``test.yaml`` cannot say: names, expressions, patterns, paths."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from seatrial.suite.expressions import FACTS, Expression, ExpressionError, compile_expression
from seatrial.suite.model import Input, Test
from seatrial.suite.variables import is_reserved
from seatrial.units import seconds

RUN_FILES = frozenset({"job.sh", "stdout", "stderr", "events.jsonl"})

_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


Report = Callable[[Sequence[str | int], str], None]


def check(test: Test, report: Report) -> None:
    """Report every fault of a decoded test by its key and message."""
    checker = _Checker(test, report)
    checker.words()
    checker.parameters()
    checker.run()
    checker.build()
    checker.inputs()


class _Checker:
    def __init__(self, test: Test, report: Report) -> None:
        self.test = test
        self.report = report

    def fault(self, message: str, *key: str | int) -> None:
        self.report(key, message)

    # ---- names and words ------------------------------------------------------------------

    def words(self) -> None:
        if not self.test.app.strip():
            self.fault("is empty; name the application", "app")
        for key in ("tags", "toolchains", "modules"):
            for i, word in enumerate(getattr(self.test, key)):
                if not word.strip() or any(c.isspace() for c in word):
                    self.fault(f"{word!r} is not one word", key, i)
        for name, value in self.test.environment.items():
            if not _VARIABLE.fullmatch(name.lstrip("_")):
                self.fault("is not a name for a variable", "environment", name)
            if "\0" in str(value):
                self.fault("holds a NUL character", "environment", name)

    # ---- parameters -----------------------------------------------------------------------

    def parameters(self) -> None:
        known: set[str] = set(FACTS)
        for name, value in self.test.parameters.items():
            self._parameter_name(name)
            if isinstance(value, list):
                self._literals(name, value)
            elif isinstance(value, str):
                self._expression(value, known, "parameters", name)
            known.add(name)
        grouped: set[str] = set()
        for i, group in enumerate(self.test.zip):
            if len(group) < 2:
                self.fault("a group needs two or more parameters", "zip", i)
            for name in group:
                if name not in self.test.parameters:
                    self.fault(f"{name!r} is not a parameter", "zip", i)
                elif name in grouped:
                    self.fault(f"{name!r} is in a group already", "zip", i)
                grouped.add(name)
        for i, condition in enumerate(self.test.exclude):
            self._expression(condition, known, "exclude", i)

    def _parameter_name(self, name: str) -> None:
        if not _VARIABLE.fullmatch(name) or keyword.iskeyword(name):
            message = "a parameter's name must be letters, digits and _, and no word of expressions"
            self.fault(message, "parameters", name)
        elif is_reserved(name):
            self.fault(
                "scripts use this name for something else; choose another", "parameters", name
            )

    def _literals(self, name: str, values: list[str | int | float | bool]) -> None:
        if not values:
            self.fault("has no value, so the test has no case", "parameters", name)
        seen = set()
        for i, value in enumerate(values):
            if (type(value), value) in seen:
                self.fault(f"{value!r} is given twice", "parameters", name, i)
            if isinstance(value, str) and ("\0" in value or "\n" in value):
                self.fault("a value must be one line of text", "parameters", name, i)
            seen.add((type(value), value))

    def _expression(self, text: str, known: set[str], *key: str | int) -> Expression | None:
        try:
            expression = compile_expression(text)
        except ExpressionError as error:
            self.fault(str(error), *key)
            return None
        for name in sorted(expression.names - known):
            self.fault(f"{text!r}: {name} is not defined{self._remedy(name)}", *key)
        return expression

    def _remedy(self, name: str) -> str:
        known = [*self.test.parameters, *FACTS]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        if near and near[0] != name:
            return f"; did you mean {near[0]}?"
        if near:
            return "; it is written further down, and must stand above"
        return f"; for a word write [{name}]; the facts are {', '.join(FACTS)}"

    # ---- run and build --------------------------------------------------------------------

    def run(self) -> None:
        run = self.test.run
        known = {*FACTS, *self.test.parameters}
        if not run.script.strip():
            self.fault("is empty", "run", "script")
        if run.tasks is not None and run.tasks_per_node is not None:
            self.fault("give tasks or tasks_per_node, not both", "run", "tasks_per_node")
        for key in ("nodes", "tasks", "tasks_per_node", "threads_per_task"):
            value = getattr(run, key)
            if isinstance(value, str):
                self._expression(value, known, "run", key)
            elif value is not None and value < 1:
                self.fault(f"{value} is less than 1", "run", key)
        if run.scope == "each_node" and run.nodes != 1:
            self.fault("scope: each_node runs on one node at a time; remove nodes", "run", "nodes")
        self._walltime(known)
        self._no_nul(run.script, "run", "script")

    def _walltime(self, known: set[str]) -> None:
        value = self.test.run.walltime
        try:
            seconds(value)
        except ValueError as error:
            if not isinstance(value, str) or not any(name in value for name in known):
                self.fault(str(error), "run", "walltime")
            else:
                self._expression(value, known, "run", "walltime")

    def build(self) -> None:
        build = self.test.build
        if build is None:
            return
        if not build.script.strip():
            self.fault("is empty", "build", "script")
        self._no_nul(build.script, "build", "script")
        for i, name in enumerate(build.parameters):
            if name not in self.test.parameters:
                self.fault(f"{name!r} is not a parameter", "build", "parameters", i)
        names = set()
        for i, source in enumerate(build.sources):
            path = Path(source)
            if not path.exists():
                self.fault(f"{path} does not exist", "build", "sources", i)
            if path.name in names:
                self.fault(
                    f"a second {path.name}; both would be copied there", "build", "sources", i
                )
            names.add(path.name)
        try:
            seconds(build.timeout)
        except ValueError as error:
            self.fault(str(error), "build", "timeout")

    def inputs(self) -> None:
        for i, item in enumerate(self.test.inputs):
            if not isinstance(item, Input):
                continue
            if not Path(item.source).exists():
                self.fault(f"{item.source} does not exist", "inputs", i)
            name = item.name or Path(item.source).name
            if name in RUN_FILES or Path(name).is_absolute() or ".." in Path(name).parts:
                self.fault(f"{name!r} must be a free name inside the run directory", "inputs", i)

    def _no_nul(self, text: str, *key: str) -> None:
        if "\0" in text:
            self.fault("holds a NUL character", *key)
