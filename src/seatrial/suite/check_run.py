"""Check the ``run`` of a decoded test: sizes, placement, what is asked of scheduler and memory."""

from collections.abc import Callable
from pathlib import Path

from seatrial.lazy import regex
from seatrial.suite import run_settings
from seatrial.suite.asked_launcher import fault_of_launcher
from seatrial.suite.asked_order import fault_of_order
from seatrial.suite.asked_place import KEYS as PLACE_KEYS
from seatrial.suite.check_expressions import ExpressionChecker
from seatrial.suite.expressions import ExpressionError
from seatrial.suite.job_options import GPU_KEYS, TEXT_KEYS, fault_of_name, faults_of_options
from seatrial.suite.quantities import DEFAULT, MAX_PIECES, PIECE, memory, split_size
from seatrial.suite.run_spec import AskedNodes
from seatrial.suite.task_placement import CHOICES, NOT_BOTH, fault_of_choice
from seatrial.units import seconds

_WORD = regex(r"[A-Za-z_][A-Za-z0-9_.]*")
_SIZES = ("nodes", "tasks", "tasks_per_node", "threads_per_task", "tasks_per_numa")


class RunChecker(ExpressionChecker):
    """Adds the faults of the ``run`` of a test."""

    def check(self) -> None:
        """Add every fault."""
        run = self.test.run
        if not self.spot.given("run"):
            self._without_run()
            return
        if not run.script.strip():
            self.fault("is empty", "run", "script")
        if run.tasks is not None and run.tasks_per_node is not None:
            self.fault("give tasks or tasks_per_node, not both", "run", "tasks_per_node")
        for key in _SIZES:
            self._number(key, 1)
        self._pieces()
        self._placement()
        self._job_options()
        if run.prove and self.test.build is not None and self.test.build.prebuilt:
            self.fault(
                "builds the probe hello, but `build` is prebuilt; remove one", "run", "prove"
            )
        self._settings()
        if run.scope == "each_node" and run.nodes != 1:
            self.fault("scope: each_node runs on one node at a time; remove nodes", "run", "nodes")
        try:
            seconds(run.walltime)
        except ValueError as error:
            if isinstance(run.walltime, str) and self._is_expression(run.walltime):
                self.expression(run.walltime, self.known, "run", "walltime")
            else:
                self.fault(str(error), "run", "walltime")

    def _is_expression(self, walltime: str) -> bool:
        """Return True if a walltime that is no duration was meant as an expression."""
        return bool(self.known.intersection(_WORD.findall(walltime)) or set("*/+(") & set(walltime))

    def _number(self, key: str, least: int, most: int | None = None) -> None:
        """Check a key that is a number within bounds, or an expression."""
        value = getattr(self.test.run, key)
        if isinstance(value, str):
            self.expression(value, self.known, "run", key)
        elif value is not None and most is not None and not least <= value <= most:
            self.fault(f"{value} is not from {least} to {most}", "run", key)
        elif value is not None and value < least:
            self.fault(f"{value} is less than {least}", "run", key)

    def _words(self, key: str, fault_of: Callable[[str], str]) -> None:
        """Check a key that is a text, perhaps with expressions in braces."""
        if (written := getattr(self.test.run, key)) and (
            fixed := self.text(written, self.known, "run", key)
        ):
            self.told(fault_of(fixed), "run", key)

    def _pieces(self) -> None:
        run = self.test.run
        for key in ("pieces", "at_once"):
            self._number(key, 1, MAX_PIECES)
        if run.pieces is None and run.at_once != 1:
            self.fault("goes with `pieces`: how many runs are there?", "run", "at_once")
        if run.pieces is not None and PIECE in self.test.parameter_names:
            text = f"each run of `run.pieces` has the parameter {PIECE}: rename this one"
            self.fault(text, "parameters", PIECE)

    def _without_run(self) -> None:
        """Check a test that passes when it builds."""
        if self.test.build is None:
            self.fault("is missing; only a test with a `build` needs no `run`", "run")
            return
        for key in ("inputs", "verify", "metrics"):
            if getattr(self.test, key):
                self.fault("goes with no test without `run`: nothing is run that writes it", key)
        if self.test.repeat != 1:
            self.fault("a test without `run` is built once; remove it", "repeat")

    def _placement(self) -> None:
        """Check what the run says of cores and memory of its tasks."""
        run, known = self.test.run, self.known
        named = run.launcher in self.test.parameter_names or not self.names_known
        if run.launcher and not named:
            self.told(fault_of_launcher(run.launcher), "run", "launcher")
        for key in CHOICES:
            text = getattr(run, key)
            if text is None or text in known:
                continue
            if not _WORD.fullmatch(text):
                self.expression(text, known, "run", key)
            elif self.names_known:
                self.told(fault_of_choice(key, text), "run", key)
        if run.spread not in (None, "default") and run.tasks_per_numa is not None:
            self.fault(NOT_BOTH, "run", "tasks_per_numa")
        if run.order and run.order not in known:
            words = self.text(run.order, known, "run", "order")
            if words and self.names_known:
                self.told(fault_of_order(words), "run", "order")
        self._place()
        self._number("spare_cores", 0)

    def _place(self) -> None:
        """Check where the nodes are to be; the machine knows its levels."""
        place = self.test.run.place
        if isinstance(place, AskedNodes):
            for key in PLACE_KEYS:
                self.text(getattr(place, key), self.known, "run", "place", key)
        elif place is not None:
            self.text(place, self.known, "run", "place")
        if place is not None and self.test.run.scope == "each_node":
            self.fault("scope: each_node has its nodes; remove place", "run", "place")

    def _job_options(self) -> None:
        run, known = self.test.run, self.known
        if run.gpus_per_node is not None and run.gpus_per_task is not None:
            text = "give gpus_per_node or gpus_per_task, not both"
            self.fault(text, "run", "gpus_per_task")
        for key in GPU_KEYS:
            self._number(key, 0)
        if run.memory is not None:
            try:
                memory(run.memory)
                self.expression(split_size(run.memory)[0], known, "run", "memory")
            except ExpressionError as error:
                self.fault(str(error), "run", "memory")
        for key in TEXT_KEYS:
            self._words(key, fault_of_name)
        options = [
            self.text(each, known, "run", "options", i) for i, each in enumerate(run.options)
        ]
        for i, fault in faults_of_options([each or "--unknown" for each in options]):
            self.fault(fault, "run", "options", i)

    def _settings(self) -> None:
        run, known = self.test.run, self.known
        self._words("pages", run_settings.fault_of_pages)
        self._words("directory", run_settings.fault_of_directory)
        if run.container:
            self._container()
        for name, value in run.malloc.items():
            self.told(run_settings.fault_of_tunable(name), "run", "malloc", name)
            if isinstance(value, str) and value != DEFAULT:
                self.expression(value, known, "run", "malloc", name)
        if run.stripe is None:
            return
        at = ("run", "stripe")
        if isinstance(run.stripe.count, str) and run.stripe.count != DEFAULT:
            self.expression(run.stripe.count, known, *at, "count")
        else:
            self.spot.parsed(run_settings.stripe_count, run.stripe.count, *at, "count")
        if run.stripe.size and (size := self.text(run.stripe.size, known, *at, "size")):
            self.spot.parsed(run_settings.stripe_size, size, *at, "size")

    def _container(self) -> None:
        image = self.text(self.test.run.container, self.known, "run", "container")
        if image and (fault := run_settings.fault_of_image(image)):
            self.fault(fault, "run", "container")
        elif image and image.startswith("."):
            path = run_settings.image_of(image, self.test.folder)
            if not Path(path).exists():
                self.fault(f"there is no {path}; build the image first", "run", "container")
        if self.test.run.prove:
            message = "cannot be proved: hello is built for the host, and $LAUNCH starts the image"
            self.fault(message, "run", "container")
