"""An acceptance plan as people write it (``plan.yaml``).

The structs are the file's shape: the loader decodes by them and ``seatrial schema plan`` prints
them. ``seatrial.execute.plan.policy`` turns a component into a policy for the conductor.
"""

import math
import re
from collections.abc import Container
from typing import Annotated, Final, Literal, get_args

from msgspec import NODEFAULT, Meta
from msgspec.structs import replace

from seatrial.hooks import with_fields, with_keys
from seatrial.model.failures import KnownFailure
from seatrial.model.figures import ELAPSED
from seatrial.model.file_model import (
    Duration,
    FileModel,
    Scalar,
    Share,
    Span,
    WrittenDuration,
    WrittenShare,
    checked,
    doc,
    filled,
    part_of,
)
from seatrial.model.kinds import criterion_kinds, kind_of, named
from seatrial.model.machine import Machine, NodeGroup, SlurmOverride
from seatrial.model.moments import Day, TimeSpan
from seatrial.model.node_set import NodeSetOrNone, fold, unfold, unfold_or_empty
from seatrial.model.nodes import node_names
from seatrial.model.policy import Answer, ComponentKind, Placement, Weight
from seatrial.model.requirements import has_partitions
from seatrial.model.run_settings import overridden_settings
from seatrial.model.schedulers import Slurm
from seatrial.model.test import Keep, KeepWord, QuietAnswer, Stage
from seatrial.units import converted, figure_of, seconds, share_of

Cause = Literal[
    "node failure",
    "boot failure",
    "timeout",
    "hung",
    "wrong answer",
    "misplaced",
    "performance",
    "failed",
    "out of memory",
    "lost",
    "cancelled",
]
_SHA256 = r"[0-9a-fA-F]{64}"
Bound = WrittenShare | WrittenDuration  # which of them says the criterion
WHOLE_MACHINE: Final = named(machine=True)
"""Criteria on the whole machine: no test's runs can be left out of them."""


def of_kind(kind: ComponentKind) -> Meta:
    """Return that a key is of components of a kind alone."""
    return Meta(extra={"of_kind": kind})


class Phase(FileModel, frozen=True):
    """A stage of the installation. The machine may grow from one to the next."""

    phase: Annotated[str, doc("name of the phase")]
    nodes: Annotated[NodeSetOrNone, doc("its nodes; default: all of the machine")] = ""
    about: Annotated[str, doc("one sentence: what is there")] = ""
    slurm: Annotated[SlurmOverride, doc("in place of the machine's, in this phase")] = (
        SlurmOverride()
    )


def _is_checksum(text: str) -> None:
    if text and not re.fullmatch(_SHA256, text):
        raise ValueError("is not a SHA-256 checksum: 64 hex digits, as sha256sum prints")


class Evidence(FileModel, frozen=True):
    """A document that shows what no run of Seatrial can show, such as a vendor's report."""

    document: Annotated[str, doc("path, relative to the plan")]
    sha256: Annotated[
        Annotated[str, checked(_is_checksum)],
        doc("checksum of the document, in hex; without it: awaited"),
    ] = ""
    signed_by: Annotated[str, doc("who signed it; of an awaited one: who gives it")] = ""
    signed_on: Annotated[
        str, doc("when, such as `2026-05-04`; required, unless it comes later")
    ] = ""
    pending: Annotated[bool, doc("it comes later: its component is awaited")] = False
    about: Annotated[str, doc("what it shows, in a sentence")] = ""
    id: Annotated[str, doc("short name by which reports and waivers name it")] = ""
    clause: Annotated[str, doc("clause of the contract")] = ""

    @property
    def comes_later(self) -> bool:
        """Whether it is awaited until a person gives it."""
        return self.pending or not self.sha256


class Waiver(FileModel, frozen=True):
    """Criteria, or tests and toolchains, that both sides agreed not to count against the
    machine."""

    reason: Annotated[
        Annotated[str, filled("a waiver says why, and who agreed")], doc("why it does not count")
    ]
    by: Annotated[Annotated[str, filled("a waiver says why, and who agreed")], doc("who agreed")]
    on: Annotated[Day, doc("when: a date, 2026-05-01")]
    criteria: Annotated[list[str], doc("names or ids of criteria; default: all")] = []
    tests: Annotated[
        list[str], doc("names or patterns of tests whose runs do not count; default: all")
    ] = []
    toolchains: Annotated[
        list[str], doc("names or patterns of toolchains whose runs do not count; default: all")
    ] = []

    id: Annotated[str, doc("short name by which reports and waivers name it")] = ""
    clause: Annotated[str, doc("clause of the contract")] = ""
    about: Annotated[str, doc("what was agreed, in a sentence")] = ""

    @property
    def in_part(self) -> bool:
        """Whether it waives the runs of some tests or toolchains alone."""
        return bool(self.tests or self.toolchains)


_NAME = Annotated[Literal[tuple(criterion_kinds())], doc("its name")]  # type: ignore[valid-type]


@with_fields({"criterion": (_NAME, NODEFAULT)})
class Criterion(FileModel, frozen=True):
    """One condition for acceptance, with one bound or two. the reference has its formula."""

    criterion: str  # one of those that are known
    at_least: Annotated[Bound | None, doc("lower bound")] = None
    at_most: Annotated[Bound | None, doc("upper bound; at least one of the two is required")] = None
    tests: Annotated[
        list[str], doc("names or patterns of tests; default: all of the component")
    ] = []
    metric: Annotated[
        str, doc("of figure_of_merit, slowdown or within_expected; default: elapsed")
    ] = ""
    stage: Annotated[
        Stage | None,
        doc("of runs alone, or at full machine; default: by criterion"),
    ] = None
    within: Annotated[
        Share | None, doc("how much worse than expected a run may be; of within_expected")
    ] = None
    of: Annotated[
        Literal["median", "reference"],
        doc(
            "what is expected, of `within_expected`: the median of the case's own runs, or its "
            "reference"
        ),
    ] = "median"
    two_sided: Annotated[bool, doc("a run may not be better by more than within, either")] = False
    pooled: Annotated[
        bool,
        doc(
            "of `pass_rate` and `correct_answers`: one share of all tests that have a part of "
            "the machine, in place of that of the worst test; tests with `fill` stay apart"
        ),
    ] = False
    gauge: Annotated[
        str, doc("of `gauge`: a gauge of the machine, which the trial then reads; it is needed")
    ] = ""
    share: Annotated[
        Annotated[Share, part_of("all the time (100%)")],
        doc("of `gauge`: the least share of the trial's time in which it is inside its bounds"),
    ] = Share("100%")

    id: Annotated[str, doc("short name by which reports and waivers name it")] = ""
    clause: Annotated[str, doc("clause of the contract")] = ""
    about: Annotated[str, doc("the requirement, in a sentence")] = ""

    @property
    def of_stage(self) -> Stage | None:
        """The stage that it is about where runs have one; None: each, by itself."""
        return "alone" if self.stage is None and kind_of(self.criterion).alone else self.stage


class ChecklistItem(FileModel, frozen=True):
    """What a person checks, in a component of kind checklist: it passes, fails or is waived; with
    bounds, by a number that the person read."""

    text: Annotated[Annotated[str, filled("say what is checked")], doc("what is checked")]
    id: Annotated[str, doc("name by which it is ticked; default: its number, from 1")] = ""
    clause: Annotated[str, doc("clause of the contract")] = ""
    about: Annotated[str, doc("one sentence: how it is checked")] = ""
    unit: Annotated[str, doc("unit of the number")] = ""
    at_least: Annotated[
        float | None, doc("lower bound: the item passes by a number that a person read")
    ] = None
    at_most: Annotated[float | None, doc("upper bound of the number")] = None

    @property
    def has_number(self) -> bool:
        return self.at_least is not None or self.at_most is not None


class Exclude(FileModel, frozen=True, rename={"max_share": "most"}):
    """When a node gets no more runs of the trial."""

    after: Annotated[int, doc("failures there; 0: never", ge=0)] = 3
    within: Annotated[Duration, doc("time in which they are counted")] = Duration("24h")
    max_share: Annotated[
        Annotated[Share, part_of("all nodes (100%)")], doc("maximum share of the nodes")
    ] = Share("5%")
    causes: Annotated[
        list[Cause],
        doc("failures held against nodes; default: node failure, boot failure, hung, timeout"),
    ] = []


class Retry(FileModel, frozen=True):
    """The reaction to a failed run."""

    answers: Annotated[
        dict[Cause, Answer],
        doc(
            "reaction to each cause: `again`, `elsewhere` (not on the nodes where it failed) or "
            "`never`",
            extra_json_schema={"propertyNames": {"enum": list(get_args(Cause))}},
        ),
    ] = {}
    attempts: Annotated[int, doc("maximum attempts of a run", ge=1)] = 3
    stop_after: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        doc("consecutive failures that stop the test; 0: never; default: 3 wrong answers"),
    ] = None


class Deck(FileModel, frozen=True):
    """The input of a test, and how its runs get it."""

    source: Annotated[str, doc("file or folder, relative to the test's folder")]
    how: Annotated[
        Literal["shared", "per_target", "per_run"],
        doc("one for all, a copy on each metadata target, or a copy for each run"),
    ] = "shared"
    name: Annotated[str, doc("name in the run directory; default: its own")] = ""


class ComponentTest(FileModel, frozen=True, rename={"max_runs": "most"}):
    """How a test takes part in a component."""

    copies: Annotated[
        int,
        of_kind("sustained"),
        doc(
            "runs kept on nodes; in kind `sustained`. They take nodes or, on a host without a "
            "scheduler, cores",
            ge=0,
        ),
    ] = 0
    weight: Annotated[
        float, of_kind("sustained"), doc("its relative part of the node-hours", ge=0)
    ] = 0
    share: Annotated[
        Annotated[Share, part_of("the machine (100%)")],
        of_kind("sustained"),
        doc("its share of the node-hours, such as 25%"),
    ] = Share(0)
    max_runs: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        doc("maximum runs in flight, waiting ones included; default: no cap"),
    ] = None
    fill: Annotated[bool, of_kind("sustained"), doc("it has no claim and runs on idle nodes")] = (
        False
    )
    io: Annotated[
        Weight, doc("weight of its I/O: throttles and stagger do not hold back `light`")
    ] = "normal"
    opens: Annotated[
        float,
        doc(
            "files that a run holds open: the load on its metadata target; measured as "
            "`open_files`",
            ge=0,
        ),
    ] = 0
    loads: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]],
        doc(
            "by gauge: what a run adds to its reading, for throttles with a `target`; default: "
            "`opens`"
        ),
    ] = {}
    file_system: Annotated[str, doc("its file system; default: the component's")] = ""
    deck: Annotated[Deck | None, doc("the input that its runs share, or copy")] = None
    retry: Annotated[
        Retry | None,
        doc("what follows a failure of it, in place of all of the component's `retry`"),
    ] = None
    quiet_for: Annotated[
        Span | None,
        doc("time without output after which a run is hung; 0: never; default: the test's"),
    ] = None
    quiet_answer: Annotated[
        QuietAnswer | None, doc("reaction to a hung run; default: the test's")
    ] = None
    alone: Annotated[
        int, of_kind("isolated_then_full"), doc("runs alone (isolated_then_full)", ge=1)
    ] = 3
    full: Annotated[int, of_kind("isolated_then_full"), doc("waves at full machine", ge=1)] = 1


class Cap(FileModel, frozen=True):
    """Maximum runs in flight, unless a test sets a lower one."""

    machine: Annotated[int, doc("of the component; default: no cap", ge=0)] = 0
    per_target: Annotated[int, doc("on each metadata target; default: no cap", ge=0)] = 0
    safe_load: Annotated[bool, doc("keep the load of targets below safe_load")] = True


class Stagger(FileModel, frozen=True):
    """Spreads the starts of tests over time, except those with light I/O."""

    starts: Annotated[int, doc("starts at once", ge=1)]
    per: Annotated[Duration, doc("time until as many may follow")]


class Throttle(FileModel, frozen=True):
    """Holds back starts of tests whose I/O is not light, by a gauge: with `high` and `low`, or
    with a `target`."""

    gauge: Annotated[str, doc("a gauge of the machine")]
    high: Annotated[float | None, doc("starts are held back above it")] = None
    low: Annotated[float | None, doc("starts continue below it")] = None
    target: Annotated[
        float | None,
        doc(
            "in place of both: a run starts only where the last reading, the declared loads of "
            "all runs that started since (`loads`, else `opens`) and its own stay at or below it"
        ),
    ] = None
    settle: Annotated[
        Span,
        doc(
            "of `target`: time from the start of a run until its load is in the readings; until "
            "then what it declares is added"
        ),
    ] = Span("1m")
    on_failure: Annotated[Literal["open", "closed"], doc("assumed state while the gauge fails")] = (
        "closed"
    )
    stale_after: Annotated[
        Duration,
        doc(
            "time without a reading that counts as a failure; at least the gauge's `every` plus "
            "`timeout`"
        ),
    ] = Duration("5m")


class Watch(FileModel, frozen=True):
    """When people are alerted. 0 means never."""

    short_for: Annotated[
        Span,
        doc(
            "alert if a test has had fewer runs in flight than its copies for so long; or fewer "
            "than half of those that its share or weight holds"
        ),
    ] = Span("10m")
    silent_for: Annotated[
        Span,
        doc(
            "alert if for so long no event came after the time at which a run should have ended, "
            "or no run was started although runs are wanted"
        ),
    ] = Span("30m")
    wait_factor: Annotated[
        float,
        doc(
            "alert if a run waits in the queue so many times the usual wait of this trial, and "
            "at least 10 minutes; on a full machine at least as long as the runs that hold it "
            "take",
            ge=0,
        ),
    ] = 5
    failing: Annotated[
        bool,
        doc("alert if a test, a node or all tests fail more often than is usual in this trial"),
    ] = True
    again: Annotated[Duration, doc("time until the same alert is repeated")] = Duration("1h")


class Tell(FileModel, frozen=True):
    """How alerts reach people."""

    command: Annotated[
        Annotated[str, filled()],
        doc(
            "bash; gets `$ALERT` (the text), `$ALERT_KIND`, `$ALERT_SUBJECT` (the test, the run "
            "of kind `hung`, the nodes of kind `excluded` or `failing`, the gauge; empty for the "
            "whole trial), `$TRIAL`, `$MACHINE`"
        ),
    ]
    at_most: Annotated[int, doc("maximum runs of the command", ge=1)] = 6
    per: Annotated[Duration, doc("within this time")] = Duration("1h")
    timeout: Annotated[Duration, doc("maximum time of the command")] = Duration("30s")


class Component(FileModel, frozen=True):
    """A part of the acceptance: what runs, by which policy, and the criteria that decide it."""

    component: Annotated[str, doc("name of the component")]
    kind: Annotated[
        ComponentKind,
        doc(
            "`once`: each case as often as asked; `isolated_then_full`: alone, then waves on the "
            "full machine; `sustained`: a mix for a duration; `checklist`: people check items"
        ),
    ] = "once"
    about: Annotated[str, doc("one sentence: what it shows")] = ""
    phases: Annotated[list[str], doc("its phases; default: all")] = []
    nodes: Annotated[NodeSetOrNone, doc("its nodes; default: all of the phase")] = ""
    alongside: Annotated[
        str | list[str], doc("components that run at the same time, on other nodes")
    ] = []
    suites: Annotated[list[str], doc("suites; default: the plan's")] = []
    tests: Annotated[
        list[str] | dict[str, ComponentTest],
        doc("names or patterns of tests, with how they take part; default: all tests"),
    ] = []
    slurm: Annotated[SlurmOverride, doc("in place of the machine's and the tests' own")] = (
        SlurmOverride()
    )
    select: Annotated[str, doc("only cases that match, as -k does")] = ""
    toolchains: Annotated[list[str], doc("only these; default: the first")] = []
    settings: Annotated[
        dict[str, Scalar | list[Scalar]], doc("values for parameters, as --set does")
    ] = {}
    repeat: Annotated[
        int, of_kind("once"), doc("runs of each case (once); 0: the test's", ge=0)
    ] = 0
    duration: Annotated[
        Duration | None, of_kind("sustained"), doc("time of a sustained component")
    ] = None
    reserve: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        of_kind("sustained"),
        doc("runs that wait at the scheduler; default: one a test"),
    ] = None
    file_system: Annotated[str, doc("file system of the runs; default: the trial's")] = ""
    placement: Annotated[
        Placement,
        doc(
            "how metadata targets are chosen for run directories; `least_loaded`: by the open "
            "files that their gauges read and those of runs placed since, or by `opens` of the "
            "runs in flight if a target has no gauge or no fresh reading"
        ),
    ] = "round_robin"
    targets: Annotated[list[str], doc("only these metadata targets; default: all")] = []
    caps: Annotated[Cap, doc("maximum runs in flight")] = Cap()
    stagger: Annotated[Stagger | None, doc("maximum starts within a time")] = None
    throttles: Annotated[
        list[Throttle], doc("gauges that hold starts back while they are high")
    ] = []
    gauges: Annotated[
        list[str],
        doc("gauges that are read though no throttle goes by them, to be shown beside the runs"),
    ] = []
    blackouts: Annotated[list[TimeSpan], doc("times without starts")] = []
    retry: Annotated[Retry, doc("what follows a failure")] = Retry()
    exclude: Annotated[Exclude, doc("when nodes that fail get no more runs")] = Exclude()
    keep: Annotated[
        KeepWord | Keep | None, doc("which outputs stay; default: each test's own `keep`")
    ] = None
    watch: Annotated[Watch, doc("when people are told that a trial does not do what it should")] = (
        Watch()
    )
    criteria: Annotated[list[Criterion], doc("conditions that must be met")] = []
    evidence: Annotated[list[Evidence], doc("signed documents that show what no run can")] = []
    waivers: Annotated[
        list[Waiver], doc("agreements of both sides that a criterion, or runs, do not count")
    ] = []
    items: Annotated[
        list[ChecklistItem], of_kind("checklist"), doc("what people check, in kind checklist")
    ] = []

    @property
    def parts(self) -> dict[str, ComponentTest]:
        """How the tests take part, by name or pattern; empty if ``tests`` has names alone."""
        return self.tests if isinstance(self.tests, dict) else {}


@with_keys("plan")
class Plan(FileModel, frozen=True):
    """A ``plan.yaml``."""

    plan: Annotated[str, doc("name of the plan")]
    components: Annotated[list[Component], doc("what is run and judged, in order")]
    machine: Annotated[str, doc("machine, by name or file; default: this host")] = ""
    about: Annotated[str, doc("one sentence: what it decides")] = ""
    plugins: Annotated[
        list[str], doc("plug-ins that this file needs; a fault where one is not there")
    ] = []
    suites: Annotated[list[str], doc("folders of tests, relative to the plan")] = []
    phases: Annotated[
        list[Phase],
        doc(
            "stages of the installation, with the nodes that exist then; default: one, of the "
            "whole machine"
        ),
    ] = []
    outages: Annotated[list[TimeSpan], doc("planned outages; criteria ignore them")] = []
    alerts: Annotated[Tell | None, doc("how alerts reach people")] = None
    known_failures: Annotated[
        list[KnownFailure], doc("failures that are known, beside the tests' own")
    ] = []


# ---- bounds --------------------------------------------------------------------------------------
#
# The bounds of criteria and their quantities.


def is_relative(written: int | float | str | None) -> bool:
    """Return whether a bound of ``figure_of_merit`` is a share of the reference: ``95%``."""
    return isinstance(written, str) and written.strip().endswith("%")


def has_unit(written: int | float | str | None) -> bool:
    """Return whether a bound of ``figure_of_merit`` has a unit of its own: ``50 GB/s``."""
    return isinstance(written, str) and not is_relative(written)


def bound_of(criterion: str, written: int | float | str, metric: str = "", unit: str = "") -> float:
    """Return a bound of a criterion: seconds for ``mtbf``, a number for counts and for readings of
    a ``gauge``, else a share (which
    may be negative for ``slowdown``; for ``mix`` of percentage points). For ``figure_of_merit`` a
    number is in the metric's own unit, and per cent are a share of its reference; of the metric
    ``elapsed`` it may be a duration, and of others a figure that is converted into the metric's
    ``unit`` (where that is not known, it stays in its own). Raises ValueError with a remedy."""
    quantity = kind_of(criterion).bound
    if quantity == "metric":
        if metric == ELAPSED and not is_relative(written):
            return seconds(written)
        return _of_metric(written, unit)
    parsers = {
        "seconds": seconds,
        "count": _whole,
        "change": _signed_share,
        "points": _points,
        "reading": _reading,
    }
    if quantity in parsers:
        return parsers[quantity](written)
    share = share_of(written)
    if quantity == "part" and share > 1:
        raise ValueError(f"{written!r} is more than 100 %; write e.g. 0.95 or 95%")
    return share


def _of_metric(written: int | float | str, unit: str) -> float:
    if not isinstance(written, str):
        return float(written)
    if is_relative(written):
        return share_of(written)
    number, own = figure_of(written)
    figure = converted(number, own, unit or own)
    if figure is None:
        raise ValueError(f"{written!r} is not of the dimension of {unit}; write a unit of that")
    return figure


def _reading(written: int | float | str) -> float:
    if isinstance(written, str) or not math.isfinite(written):
        raise ValueError(f"{written!r} is no number as the gauge prints it; write e.g. 400")
    return float(written)


def _whole(written: int | float | str) -> float:
    if isinstance(written, str) or written < 0 or written != int(written):
        raise ValueError(f"{written!r} is not a whole number; write e.g. 20")
    return float(written)


def _points(written: int | float | str) -> float:
    """Return percentage points as a share."""
    if isinstance(written, str):
        text = written.strip().removesuffix("points").removesuffix("point").rstrip()
        try:
            share = share_of(text if text.endswith("%") else f"{text}%")
        except ValueError:
            raise ValueError(f"{written!r} is no percentage points; write e.g. 5 points") from None
    else:
        share = share_of(written)
    if share > 1:
        raise ValueError(f"{written!r} is more than 100 points; write e.g. 5 points")
    return share


def _signed_share(written: int | float | str) -> float:
    if isinstance(written, str):
        text = written.strip()
        return -share_of(text[1:]) if text.startswith("-") else share_of(text)
    return -share_of(-written) if written < 0 else share_of(written)


# ---- phases --------------------------------------------------------------------------------------
#
# The machine in a phase: with the nodes that exist then.


SLURMS_DEFAULT = "default"  # stands for the partition that sbatch takes where none is named
WHOLE = Phase(phase="")  # the phase of a plan without phases


def phases_of(plan: Plan, component: Component) -> list[Phase]:
    """Return the phases that a component is in, in the plan's order."""
    phases = plan.phases or [WHOLE]
    return [each for each in phases if not component.phases or each.phase in component.phases]


def tag_of(plan: Plan, component: Component, phase: str) -> str:
    """Return the run tag of a component's trial in a phase."""
    return "-".join(filter(None, (plan.plan, component.component, phase)))


def machine_of(machine: Machine, phase: Phase, nodes: str = "") -> Machine:
    """Return the machine as it is in a phase: with the nodes of that alone, and what the phase says
    to Slurm. Of a component with ``nodes`` of its own, it has these, and jobs get no others.
    Raises ValueError for a malformed node set."""
    if nodes:
        others = sorted(set(node_names(machine)) - set(unfold(nodes)))
        machine = machine_of(machine, phase)
        machine = _with_nodes(machine, nodes)
        excluded = fold([*unfold_or_empty(machine.slurm.exclude), *others])
        return replace(machine, slurm=replace(machine.slurm, exclude=excluded))
    if phase.slurm.partition is not None and has_partitions(machine):
        machine = replace(machine, nodes=_with_partitions(machine))
    if phase.slurm != SlurmOverride():
        machine = replace(machine, slurm=overridden_settings(machine.slurm, phase.slurm))
    return _with_nodes(machine, phase.nodes) if phase.nodes else machine


def _with_nodes(machine: Machine, names: str) -> Machine:
    """Return the machine with these of its nodes alone."""
    kept_names = frozenset(unfold(names))
    kinds = [replace(kind, names=kept(kind.names, kept_names)) for kind in machine.nodes]
    slurm: Slurm = machine.slurm
    if slurm.nodelist:
        slurm = replace(slurm, nodelist=kept(slurm.nodelist, kept_names))
    nodes: list[NodeGroup] = [kind for kind in kinds if kind.names]
    return replace(machine, nodes=nodes, slurm=slurm)


def _with_partitions(machine: Machine) -> list[NodeGroup]:
    """Return the nodes, each kind with its partition: a phase moves jobs to another one, and no
    nodes."""
    partition = machine.slurm.partition or SLURMS_DEFAULT
    return [replace(kind, partition=kind.partition or partition) for kind in machine.nodes]


def kept(folded: str, names: Container[str]) -> str:
    """Return those nodes of a node set that are among the names, folded; "" if none is."""
    return fold([name for name in unfold(folded) if name in names])
