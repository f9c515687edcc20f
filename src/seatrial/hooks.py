"""The hooks by which plug-ins add to Seatrial, and the plug-ins that are there.

    # seatrial_flux.py; its wheel says [project.entry-points.seatrial] flux = "seatrial_flux"
    @hookimpl
    def seatrial_schedulers() -> list[type[Scheduler]]:
        return [Flux]

A plug-in is a module that an installed wheel names as an entry point of the group ``seatrial``.
Features of the product itself are plug-ins, too (``seatrial/plugins/``): they come by the same
door, and the core imports none of them. The core registers its schedulers, launchers and criteria
by the same hooks.

Plug-ins are imported when a command starts, so what they return names its code as
``module:attribute``; `load` imports that where it is used.
"""

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, cast

import pluggy
from msgspec import Struct, defstruct
from msgspec.structs import replace

from seatrial.errors import UsageError

GROUP = "seatrial"
HOOK = "seatrial_"  # how the name of each hook begins
WITHOUT = "SEATRIAL_WITHOUT_PLUGINS"
"""The variable that names plug-ins which are not loaded, with commas between them."""

# What the core itself has, as a plug-in would have it.
_CORE = (
    "seatrial.model.schedulers",
    "seatrial.model.kinds",
)

_T = TypeVar("_T")

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


# ---- what plug-ins return ------------------------------------------------------------------------


class Command(Struct, frozen=True):
    """A command of the command line."""

    #: What is typed after ``seatrial``.
    name: str
    #: ``module:attribute`` of a click command, imported when the command is called.
    command: str
    #: The line in ``seatrial --help``.
    help: str
    #: The heading in ``seatrial --help`` under which it stands; a new one comes last.
    group: str


class CheckKind(Struct, frozen=True):
    """A kind of check: a key of an item of ``verify:`` in a test.yaml."""

    #: The key.
    name: str
    #: The type of its value, as in a Struct, with its description by ``doc()``.
    type: Any
    #: ``module:function``, called with the value, the folder of the run and the file that ``in``
    #: names. It returns what is wrong, or "". It may raise ValueError for a value that is none.
    find: str


class CriterionKind(Struct, frozen=True):
    """A criterion of an acceptance."""

    #: What ``criterion:`` of a plan says.
    name: str
    #: ``module:function``, called with a TrialView and the Criterion. It returns Results, the one
    #: on all subjects first. Its docstring is the page of the reference: formula, example, and when
    #: it is undecided.
    judge: str
    #: The quantity of its value and its bounds. part: a share of at most 1; share: one that may be
    #: more; change: a share that may be negative; points: of percentage; count: a whole number;
    #: seconds; metric: in the metric's own unit; reading: bounds of a gauge's readings, of a value
    #: that is a share of time; none: it has no bound.
    bound: Literal[
        "part", "share", "change", "points", "count", "seconds", "metric", "reading", "none"
    ]
    #: What is counted, in the singular.
    noun: str = ""
    #: The kind of component to which it applies; "" for each that has runs.
    component: str = ""
    #: Why it has no ``stage``; "" if it has one.
    stageless: str = ""
    #: Whether it is about a metric, which ``metric:`` names.
    metric: bool = False
    #: Whether it may be ``pooled``.
    pooled: bool = False
    #: Whether it is about the whole machine: no test's runs can be left out.
    machine: bool = False
    #: Whether it compares with what is expected of a run that has the machine for itself.
    alone: bool = False


class Database(Struct, frozen=True):
    """A kind of database that can hold the store of results."""

    #: What its URLs begin with, before ``://``.
    schemes: tuple[str, ...]
    #: ``module:class`` of its Store, made from a URL and a time to wait.
    store: str
    #: ``module:function`` that makes a store: called with a URL, its writer and its viewers.
    create: str
    #: The package that it needs, and the extra of Seatrial that brings that package.
    needs: str
    extra: str


class Delivery(Struct, frozen=True):
    """What sends the events of trials elsewhere."""

    #: ``module:function``, called with a TrialFolder, an Observer and the level of its log before a
    #: trial is driven. It returns the Observer that is told of the events, perhaps the same.
    observe: str
    #: ``module:function``, called with a TrialFolder and the level of its log when events were
    #: added to a trial that nobody drives. It returns why they cannot be sent, "" if they can.
    start: str
    #: ``module:function``, called with a TrialFolder. It returns what the page of a trial shows of
    #: its targets: how far behind each is.
    lags: str


class FactSource(Struct, frozen=True):
    """What is known of the nodes of runs, and may explain their figures."""

    #: ``module:function``, called with the Store and the two Sides of a comparison. It returns the
    #: Differences between their nodes.
    differences: str
    #: ``module:function``, called with the Store and Histories. It returns them with what changed
    #: on the nodes when their levels did.
    changes: str
    #: ``module:function``, called with the Store, the name of a machine and RunOutcomes of it. It
    #: returns `seatrial.results.variability.SlowFacts`: facts of nodes with slow runs; None if
    #: it knows none.
    slow: str
    #: ``module:function``, called like ``slow``. It returns a sentence about each node of which it
    #: knows something, by name, which stands beside suspects. "" if there is none.
    nodes: str = ""


class FileKind(Struct, frozen=True):
    """A kind of file that people write: it has a schema, and a page of the reference. The plug-in
    reads it by `seatrial.model.documents.load_checked`."""

    #: What ``seatrial schema`` is asked for.
    name: str
    #: The title of its page.
    title: str
    #: ``module:class`` of its Struct.
    shape: str


class GaugeKind(Struct, frozen=True):
    """A gauge of every machine. Throttles of plans and targets of file systems can go by it, as by
    those of the machine's file; one of these with the same name counts."""

    #: The name, which begins with that of the plug-in.
    name: str
    #: Bash that prints the number.
    command: str
    #: The seconds between two readings, and those that a reading may take.
    every: float = 30.0
    timeout: float = 10.0


class Importer(Struct, frozen=True):
    """A command below ``seatrial import``."""

    #: ``module:attribute`` of a click command.
    command: str


class JobPart(Struct, frozen=True):
    """What a plug-in adds to the jobs of runs."""

    #: ``module:function``, called with the Machine, the Test and the Case. It returns the
    #: `seatrial.execute.script.JobLines` of the job's script, empty ones for a job like any other.
    lines: str
    #: ``module:function``, called with these and the new directory of a run, for what the lines
    #: need there. It may raise OSError.
    prepare: str


class Key(Struct, frozen=True):
    """A key of a file that people write. The decoded value is an attribute of that name of the
    machine, test or plan, or of the part of a machine."""

    #: Where the key stands: at the top of a machine, test or plan; in each file_system or gauge of
    #: a machine.
    file: str
    #: The key.
    name: str
    #: The type of the value, as in a Struct: its description by ``doc()`` is that of the schema.
    type: Any
    #: The value of a file without the key.
    default: Any
    #: ``module:function`` that adds faults which the type does not show, for a key at the top of a
    #: file. It is called with the decoded file (of a plan, its Loaded, with its machine and suites)
    #: and the Location of the value. "" if there are none.
    check: str = ""
    #: ``module:function``, called with the value and its Location, that returns it as trials of a
    #: machine keep it: with absolute paths, as the file may move. "" if it is kept as it is.
    resolve: str = ""
    #: Whether runs depend on it. If not, a trial may go on where the value has changed.
    of_runs: bool = True


class LauncherKind(Struct, frozen=True):
    """A program that starts the tasks of a run."""

    #: What ``launcher`` of a test, and ``kind`` of a launcher of a machine, say. It is the program,
    #: unless the machine has another ``command``.
    name: str
    #: ``module:function``, called with a `seatrial.execute.launchers.TaskLaunch`. It returns the
    #: words of the line between the program and the options that the machine has for it.
    arguments: str
    #: Whether they put ranks in the order that a test asks for.
    orders: bool = False


class OutputFormat(Struct, frozen=True):
    """A known output, whose figures ``metrics: {from: NAME}`` of a test.yaml reads."""

    #: The name.
    name: str
    #: A module with ``parse(text) -> list[MetricValue]``, as those of the core in
    #: ``judge/outputs``; the first line of its docstring describes it.
    module: str


class Option(Struct, frozen=True):
    """What a study can be asked: an option of its command, a field of its page."""

    #: Its name: ``--name`` of the command, a parameter of the page's address.
    name: str
    #: Its line in the help.
    help: str
    #: Its value where none is given.
    default: str = ""
    #: The values that it can have; any where it is empty.
    choices: tuple[str, ...] = ()
    #: Whether it is given without a value; its value is then "1", and "" where it is not given.
    flag: bool = False


class PageAddition(Struct, frozen=True):
    """What a plug-in adds to a page of the core."""

    #: The page: run or machine.
    page: str
    #: ``module:function``, called in a thread with the ServerState and what the page is about: of
    #: run a RunRow and the Record of its trial, None where that cannot be read; of machine a View.
    #: It returns values by name, which are members of the page's JSON.
    data: str
    #: The template, in ``templates/`` beside that module, which shows them (as ``data.added``).
    template: str


class ResourceKind(Struct, frozen=True):
    """What runs take beside cores, nodes and node-hours, such as charges: figures can be shown by
    it (``--per NAME``)."""

    #: The name, which is also the unit.
    name: str
    #: ``module:function``, called with a `seatrial.results.case_figures.CaseRuns`. It returns how
    #: much of it a run takes in an hour, 0 where that is not known; or raises UsageError, which
    #: says what is missing.
    rate: str


class SinkKind(Struct, frozen=True):
    """A kind of system that events are sent to."""

    #: What ``kind:`` of a sink says.
    name: str
    #: ``module:class`` of a SinkTarget, made from the Sink, a TrialInfo, and a function that
    #: returns the name of a case by its id.
    target: str
    #: Keys of a sink that it needs, and that it may have, beside those of all sinks.
    needs: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    #: The key that tells people where it is: path, url or to.
    place: str = "url"
    #: What its URL begins with.
    schemes: tuple[str, ...] = ("http", "https")
    #: Whether people read it: it takes alerts, failures and ends alone, unless its sink says more.
    people: bool = False
    #: The seconds between two checks for events.
    every: float = 2.0


class StoreTable(Struct, frozen=True):
    """A table in the store of results. The store can be deleted at any time: whatever the table
    holds comes from journals, or from files that the plug-in keeps beside them."""

    #: The name of the table, which begins with that of the plug-in.
    name: str
    #: ``module:attribute`` of a `seatrial.results.store.tables.Table`.
    table: str
    #: ``module:function``, called with the Store and the folder of the trials whenever the store is
    #: brought up to date: it fills the table with what is not there yet. "" if that of another
    #: table of the plug-in does, or ``rows``.
    fill: str = ""
    #: ``module:function``, called in place of ``fill`` where the store cannot be written. It
    #: returns notices of what the table does not have. "" if that is all in journals.
    missing: str = ""
    #: The SQL of one row that is another one whenever the table's rows are: then open pages ask
    #: again. "" if no page shows them.
    news: str = ""
    #: The name on disk of an event of runs, each of which has rows in the table as a journal is
    #: read. The table then has a column ``trial``, the row of the trial, with which they go.
    event: str = ""
    #: ``module:function``, called with the row of the run (a StoredRun) and the event. It returns
    #: the rows.
    rows: str = ""


class ShippedSuite(Struct, frozen=True):
    """A suite that ships with a plug-in."""

    #: The name of its folder in a copy: ``seatrial probes --all``.
    name: str
    #: The folder with its tests.
    folder: Path


class Study(Struct, frozen=True):
    """A question to the store of results: a command, a page of the server, JSON and CSV."""

    #: The name: ``seatrial NAME``, and the page ``/NAME``.
    name: str
    #: Its title in the navigation of the server.
    title: str
    #: The line in ``seatrial --help``.
    help: str
    #: ``module:function``, called with the Store and the value of each option as keywords. It
    #: returns a `seatrial.show.page.Page`. It raises `seatrial.UsageError` for what cannot be
    #: answered.
    run: str
    options: tuple[Option, ...] = ()
    #: The heading in ``seatrial --help`` under which it stands.
    group: str = "Judge results"
    #: The help of the command; "": the docstring of that function, which is then imported for it.
    about: str = ""


class SuspectSource(Struct, frozen=True):
    """What accuses nodes beside the runs of trials: an option of ``seatrial suspects``."""

    #: The option: its source is asked where it is given.
    option: Option
    #: What its value is called in the help.
    metavar: str
    #: ``module:function``, called with the Store, the machine that was asked for ("" if none was),
    #: the value of the option, and for each machine the nodes that runs accuse. It returns a
    #: `seatrial.show.page.Page`, whose records are a mapping for each machine. It raises
    #: `seatrial.UsageError` for what cannot be answered.
    accuse: str


class WebPage(Struct, frozen=True):
    """A page of the server at ``path``; its JSON is at the same path with ``.json``."""

    #: The path, with parameters in braces: ``/runs/{trial}/{run_id}``.
    path: str
    #: The area of the navigation to which it belongs: one of the core, or one that `title` adds.
    area: str
    #: ``module:function``, called in a thread with the ServerState and the PageQuery. It returns
    #: what the template shows (as ``data``) and is the page's JSON: a Struct, or a mapping.
    data: str
    #: The template, in ``templates/`` beside that module. A page without one is data only.
    template: str = ""
    #: The title of the area in the navigation, where this page adds the area.
    title: str = ""
    #: The field of the data that is a table, also served as CSV; "" for none.
    rows: str = ""
    #: Whether the template has a form, and shows ``refused`` if the query is invalid.
    form: bool = False
    #: Whether it has large plots, which are drawn in the browser.
    plots: bool = False


# ---- the hooks -----------------------------------------------------------------------------------


@hookspec
def seatrial_alerts() -> list[str]:  # type: ignore[empty-body]
    """Return what watches trials that are driven, each as ``module:coroutine function``. It is
    called with the Record and the Tasks of a drive, whose ``alert(kind, subject, text)`` tells
    people, and is cancelled as the drive ends."""


@hookspec
def seatrial_checks() -> list[CheckKind]:  # type: ignore[empty-body]
    """Return kinds of checks. Asked when the model of test files is imported."""


@hookspec
def seatrial_collectors() -> list[str]:  # type: ignore[empty-body]
    """Return what reads further from the directories of runs that have ended, each as
    ``module:class``: a subclass of `seatrial.execute.run_collector.RunReader`, made for each trial
    that is driven."""


@hookspec
def seatrial_commands() -> list[Command]:  # type: ignore[empty-body]
    """Return commands. Asked when ``seatrial`` starts; the commands are imported when called."""


@hookspec
def seatrial_criteria() -> list[CriterionKind]:  # type: ignore[empty-body]
    """Return criteria. Asked when the model of plans is imported."""


@hookspec
def seatrial_databases() -> list[Database]:  # type: ignore[empty-body]
    """Return kinds of databases for the store of results. Asked when a store is named by a URL."""


@hookspec
def seatrial_deliveries() -> list[Delivery]:  # type: ignore[empty-body]
    """Return what sends events elsewhere. Asked when a trial is driven, changed or shown."""


@hookspec
def seatrial_events() -> list[str]:  # type: ignore[empty-body]
    """Return kinds of events, each as ``module:class``: a subclass of an event of
    `seatrial.journal.events` with a number of its own and with ``tag=``, its name on disk. Its
    attributes say how it is stored and told. Asked when the events are imported. Where the plug-in
    is not there, its events are kept as they are."""


@hookspec
def seatrial_fact_sources() -> list[FactSource]:  # type: ignore[empty-body]
    """Return sources of facts of nodes. Asked by the studies ``compare``, ``history`` and
    ``suspects``."""


@hookspec
def seatrial_files() -> list[FileKind]:  # type: ignore[empty-body]
    """Return kinds of files. Asked by ``seatrial schema`` and the reference."""


@hookspec
def seatrial_gauges() -> list[GaugeKind]:  # type: ignore[empty-body]
    """Return gauges. Asked when a machine file or a plan names one, and when a trial is driven."""


@hookspec
def seatrial_guards() -> list[str]:  # type: ignore[empty-body]
    """Return what may refuse runs before they are submitted, each as ``module:function``: called
    with the Machine and the Tasks of a drive, it returns a `seatrial.execute.jobs.LaunchGuard`, or
    None where the machine has none."""


@hookspec
def seatrial_importers() -> list[Importer]:  # type: ignore[empty-body]
    """Return importers of what other harnesses have. Asked by ``seatrial import``."""


@hookspec
def seatrial_job_parts() -> list[JobPart]:  # type: ignore[empty-body]
    """Return parts of jobs. Asked when a trial is driven."""


@hookspec
def seatrial_keys() -> list[Key]:  # type: ignore[empty-body]
    """Return keys of files. Asked when the model of that file is imported."""


@hookspec
def seatrial_launchers() -> list[LauncherKind]:  # type: ignore[empty-body]
    """Return kinds of launchers. Asked when the model of machine files is imported."""


@hookspec
def seatrial_output_formats() -> list[OutputFormat]:  # type: ignore[empty-body]
    """Return known outputs. Asked when a test names one, or all are listed."""


@hookspec
def seatrial_page_additions() -> list[PageAddition]:  # type: ignore[empty-body]
    """Return additions to pages of the core. Asked when the server starts."""


@hookspec
def seatrial_pages() -> list[WebPage]:  # type: ignore[empty-body]
    """Return pages of the server. Asked when the server starts."""


@hookspec
def seatrial_promises() -> list[str]:  # type: ignore[empty-body]
    """Return what knows promises, such as advertised figures, each as ``module:function``: called
    with a Machine, a Test, and the folder in which its runs work ("" if that is not known), it
    returns a `seatrial.judge.promises.Promise` for each metric of which something was promised, by
    name. Asked by what shows figures, and before runs, for faults of units."""


@hookspec
def seatrial_resources() -> list[ResourceKind]:  # type: ignore[empty-body]
    """Return what runs take. Asked by commands that have ``--per``."""


@hookspec
def seatrial_rules() -> list[Path]:  # type: ignore[empty-body]
    """Return files of rules over facts of nodes. Of equal names the last one counts."""


@hookspec
def seatrial_schedulers() -> list[Any]:  # type: ignore[empty-body]
    """Return classes of batch systems, subclasses of `seatrial.model.schedulers.Scheduler`. Asked
    when the model of machine files is imported."""


@hookspec
def seatrial_sinks() -> list[SinkKind]:  # type: ignore[empty-body]
    """Return kinds of sinks. Asked when the model of machine files is imported."""


@hookspec
def seatrial_studies() -> list[Study]:  # type: ignore[empty-body]
    """Return studies. Asked when ``seatrial`` starts, and when the server starts."""


@hookspec
def seatrial_suites() -> list[ShippedSuite]:  # type: ignore[empty-body]
    """Return suites. Asked when suites that ship are copied."""


@hookspec
def seatrial_suspect_sources() -> list[SuspectSource]:  # type: ignore[empty-body]
    """Return what accuses nodes beside runs. Asked by ``seatrial suspects``."""


@hookspec
def seatrial_tables() -> list[StoreTable]:  # type: ignore[empty-body]
    """Return tables of the store. Asked when a store is opened."""


# ---- the plug-ins that are there -----------------------------------------------------------------


class PluginFailed(UsageError):
    """A plug-in cannot be imported."""


class _Manager(pluggy.PluginManager):
    """The plug-ins that are loaded. Of the names in a module it looks at those of hooks alone."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        return super().parse_hookimpl_opts(plugin, name) if name.startswith(HOOK) else None

    def parse_hookspec_opts(
        self, module_or_class: ModuleType | type, name: str
    ) -> pluggy.HookspecOpts | None:
        return super().parse_hookspec_opts(module_or_class, name) if name.startswith(HOOK) else None


@functools.cache
def plugins() -> pluggy.PluginManager:
    """Return the plug-ins that are loaded. Raises PluginFailed where one cannot be imported: what
    it adds would be missing without a word."""
    manager = _Manager(GROUP)
    manager.add_hookspecs(sys.modules[__name__])
    for name in _CORE:
        manager.register(importlib.import_module(name), name)
    left_out = switched_off()
    for plugin in installed():
        if plugin.name not in left_out:
            manager.register(_imported(plugin), plugin.name)
    return manager


class Plugin(Struct, frozen=True):
    """A plug-in that is installed: the name of its entry point, and what that names."""

    name: str
    place: str

    @property
    def is_own(self) -> bool:
        """Whether it is a feature of Seatrial itself."""
        return self.place.startswith("seatrial.plugins.")


@functools.cache
def installed() -> tuple[Plugin, ...]:
    """Return the plug-ins that are installed, by name: those of Seatrial, then others.

    They are the entry points of the group in the packages on the path. ``importlib.metadata`` takes
    longer to read them than a short command does, so it is asked for archives of packages only.
    """
    found: dict[str, Plugin] = {}
    for place in map(Path, sys.path):
        for plugin in _in_archive(place) if place.is_file() else _in_folder(place):
            found.setdefault(plugin.name, plugin)  # the first on the path counts, as for modules
    return tuple(sorted(found.values(), key=lambda plugin: (not plugin.is_own, plugin.name)))


def _in_folder(folder: Path) -> Iterator[Plugin]:
    """Yield the plug-ins of the packages in a folder."""
    for file in sorted(folder.glob("*-info/entry_points.txt")):
        with contextlib.suppress(OSError):
            # plain: a file of an installed package
            yield from entry_points(file.read_text(errors="replace"))


def entry_points(text: str) -> Iterator[Plugin]:
    """Yield the plug-ins that a package's file of entry points names. The format is that of the
    specification https://packaging.python.org/specifications/entry-points."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[ ]")
        elif group == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, place = line.partition("=")
            yield Plugin(name.strip(), place.strip())


def _in_archive(file: Path) -> Iterator[Plugin]:
    """Yield the plug-ins of the packages in an archive on the path."""
    from importlib.metadata import distributions

    for package in distributions(path=[str(file)]):
        for point in package.entry_points.select(group=GROUP):
            yield Plugin(point.name, point.value)


def switched_off() -> frozenset[str]:
    """Return the names of the plug-ins that are not to be loaded."""
    return frozenset(filter(None, map(str.strip, os.environ.get(WITHOUT, "").split(","))))


def _imported(plugin: Plugin) -> Any:
    try:
        return load(plugin.place)
    except Exception as error:
        raise PluginFailed(
            f"the plug-in {plugin.name} ({plugin.place}) cannot be imported: {error!r}; "
            f"remove its package, or go without it: {WITHOUT}={plugin.name}"
        ) from error


def missing(names: Iterable[str]) -> list[str]:
    """Return those of these plug-ins that are not loaded."""
    loaded = {name for name, _ in plugins().list_name_plugin()}
    return [name for name in names if name not in loaded]


def plugin_with(word: str) -> str:
    """Return the plug-in that is switched off and brings something of that name, such as a key or a
    batch system; "" if there is none."""
    for plugin in installed():
        if plugin.name in switched_off():
            module = _imported(plugin)
            asked = [getattr(module, name) for name in dir(module) if name.startswith("seatrial_")]
            if any(item.name == word for hook in asked for item in hook() if hasattr(item, "name")):
                return plugin.name
    return ""


def provided(hook: str) -> Iterator[Any]:
    """Yield what plug-ins return for a hook, item by item: the core's first, then in the order in
    which they were loaded."""
    for returned in reversed(getattr(plugins().hook, hook)()):  # pluggy asks the latest first
        yield from returned


def load(name: str) -> Any:
    """Return the object that ``module:attribute`` names, or the module where there is no attribute.
    The module is imported."""
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


# ---- keys of files -------------------------------------------------------------------------------


def keys_of(file: str) -> Iterator[Key]:
    """Yield the keys that plug-ins add to a kind of file."""
    yield from (key for key in provided("seatrial_keys") if key.file == file)


def with_keys(file: str) -> Callable[[type[_T]], type[_T]]:
    """Give a Struct, the shape of a kind of file, the keys that plug-ins add to it."""
    return with_fields({key.name: (key.type, key.default) for key in keys_of(file)})


def with_fields(fields: Mapping[str, tuple[Any, Any]]) -> Callable[[type[_T]], type[_T]]:
    """Give a Struct further fields, each with a type and a default. A field that it has gets that
    type."""

    def extended(shape: type[_T]) -> type[_T]:
        made = defstruct(
            shape.__name__,
            [(name, *about) for name, about in fields.items()],
            bases=(cast(type[Struct], shape),),
            module=shape.__module__,
            namespace={"__doc__": shape.__doc__, "__qualname__": shape.__qualname__},
        )
        return cast(type[_T], made)

    return extended


def check_keys(kind: str, file: Any, location: Any) -> None:
    """Add the faults of keys that plug-ins added to a kind of file, whose ``location`` is given."""
    for key in keys_of(kind):
        if key.check:
            load(key.check)(file, location.inside(key.name))


def resolved(kind: str, file: _T, location: Any) -> _T:
    """Return a file with the values of keys that plug-ins added to it as trials keep them."""
    values = {
        key.name: load(key.resolve)(getattr(file, key.name), location.inside(key.name))
        for key in keys_of(kind)
        if key.resolve
    }
    return cast(_T, replace(cast(Struct, file), **values))


def value_of(file: Struct, key: str, shape: type[_T]) -> _T:
    """Return the value of a key that a plug-in added to a file."""
    value = getattr(file, key)
    assert isinstance(value, shape)
    return value
