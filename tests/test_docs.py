"""The documentation tells everything that there is, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest
import yaml

from seatrial.acceptance.criteria import CRITERIA
from seatrial.acceptance.utilisation import USES
from seatrial.backends.task_states import ENDED
from seatrial.cli import seatrial
from seatrial.file_model import FileModel
from seatrial.journal.codes import CODES, code_of
from seatrial.journal.encoding import decode
from seatrial.journal.events import EVENT_KINDS, Event, RunEvent
from seatrial.journal.run_life import RUN_STATE_HELP, RunLife
from seatrial.journal.trial_life import TRIAL_STATE_HELP
from seatrial.machine import failures, rehearsal_model
from seatrial.machine import model as machine
from seatrial.machine.load import load_machine
from seatrial.machine.schedulers import Slurm
from seatrial.machine.sinks import Sink
from seatrial.plan import model as plan
from seatrial.plan import moments
from seatrial.plan import rehearsal_model as plan_rehearsal
from seatrial.plan.bounds import bound_of
from seatrial.plan.policy import ANSWERS
from seatrial.plan.prepare import prepare_plan
from seatrial.plugins.gridengine import GridEngine
from seatrial.plugins.pbs import Pbs
from seatrial.rules import launch_rules, routing, submit_rules
from seatrial.rules import model as rules
from seatrial.store.by_case import NUMBERS
from seatrial.studies import score_file
from seatrial.studies.selection import KEYS
from seatrial.suite import case_names, check_spec, run_spec
from seatrial.suite import model as suite
from seatrial.suite.expressions import _FUNCTIONS, FACTS
from seatrial.suite.variables import BUILD_AND_RUN, RUN_ONLY
from seatrial.trial.options import TrialOptions
from seatrial.trial.prepare import prepare_trial, require_cases
from seatrial.verify import references
from seatrial.verify.formats import find_format, formats
from seatrial.web.routes import PAGES as PAGES_SERVED

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "seatrial"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("suites/*/README.md")])

TESTS, MACHINES, PLANS = "how-to/writing-tests.md", "how-to/machines.md", "how-to/plans.md"
COMPARING = "how-to/comparing.md"
FACTS_PAGE = "how-to/facts.md"
GUARD_PAGE = "how-to/guard.md"
QUOTA_PAGE = "how-to/quota.md"

# Whose keys are told in which section of which page.
SHAPES: list[tuple[type[msgspec.Struct], str, str]] = [
    (suite.TestFile, TESTS, "Keys of test.yaml"),
    (suite.Build, TESTS, "build"),
    (run_spec.RunSpec, TESTS, "run"),
    (run_spec.Stripe, TESTS, "Pages, malloc and stripes"),
    (run_spec.AskedNodes, TESTS, "Nodes in the network"),
    (suite.FromParameter, TESTS, "Variables of a parameter"),
    (suite.OwnFlags, TESTS, "Flags of a toolchain"),
    (suite.Requires, TESTS, "requires"),
    (suite.Input, TESTS, "inputs"),
    (suite.Keep, TESTS, "keep"),
    (check_spec.Check, TESTS, "verify"),
    (check_spec.PlacementCheck, TESTS, "Where ranks and threads ran"),
    (failures.KnownFailure, TESTS, "known_failures"),
    (suite.FailureMode, TESTS, "failures"),
    (check_spec.Metric, TESTS, "metrics"),
    (machine.Machine, MACHINES, "Keys of a machine file"),
    (machine.NodeGroup, MACHINES, "nodes"),
    (machine.PageSettings, MACHINES, "pages"),
    (machine.WrittenLayout, MACHINES, "layout"),
    (machine.Places, MACHINES, "places"),
    (machine.NetworkModel, MACHINES, "topology"),
    (machine.Toolchain, MACHINES, "toolchains"),
    (machine.BuildSettings, MACHINES, "builds"),
    (machine.Launcher, MACHINES, "launchers"),
    (machine.Compat, MACHINES, "compat"),
    (machine.ContainerRuntime, MACHINES, "containers"),
    (Slurm, MACHINES, "slurm"),
    (Pbs, MACHINES, "pbs"),
    (GridEngine, MACHINES, "gridengine"),
    (failures.LogRule, MACHINES, "Log rules"),
    (machine.FileSystem, MACHINES, "File systems"),
    (machine.MetadataTarget, MACHINES, "Metadata targets"),
    (machine.Gauge, MACHINES, "Gauges"),
    (machine.FileUse, MACHINES, "Keys of file_use"),
    (Sink, MACHINES, "sinks"),
    (rehearsal_model.FileSystemModel, MACHINES, "Capacity in a rehearsal"),
    (rehearsal_model.LoadLevel, MACHINES, "Levels of load"),
    (rehearsal_model.MachineModel, MACHINES, "How it behaves in a rehearsal"),
    (rehearsal_model.Background, MACHINES, "Jobs of others"),
    (references.Reference, MACHINES, "References"),
    (references.Learned, MACHINES, "References"),
    (plan.Plan, PLANS, "Keys of a plan"),
    (plan.Phase, PLANS, "phases"),
    (plan.Component, PLANS, "components"),
    (machine.SlurmOverride, PLANS, "slurm"),
    (plan.ComponentTest, PLANS, "tests"),
    (plan.Deck, PLANS, "decks"),
    (plan.Retry, PLANS, "What follows a failure"),
    (plan.Exclude, PLANS, "Nodes that fail"),
    (plan.Cap, PLANS, "caps"),
    (plan.Stagger, PLANS, "stagger"),
    (plan.Throttle, PLANS, "throttles"),
    (moments.TimeSpan, PLANS, "Blackouts and outages"),
    (plan_rehearsal.RehearsedEvent, PLANS, "Events of a rehearsal"),
    (plan.Watch, PLANS, "watch"),
    (plan.Tell, PLANS, "alerts"),
    (plan.Criterion, PLANS, "criteria"),
    (plan.Evidence, PLANS, "evidence"),
    (plan.Waiver, PLANS, "waivers"),
    (plan.ChecklistItem, PLANS, "items"),
    (plan_rehearsal.Rehearsal, PLANS, "Rehearsals"),
    (plan_rehearsal.Behaviour, PLANS, "How runs turn out"),
    (plan_rehearsal.ElapsedModel, PLANS, "Distributions of elapsed times"),
    (plan_rehearsal.ModelledMetric, PLANS, "Distributions of metrics"),
    (score_file.ScoreFile, COMPARING, "Keys of score.yaml"),
    (score_file.ScoreTerm, COMPARING, "parts"),
    (score_file.ScorePhase, COMPARING, "phases"),
    (rules.RuleFile, FACTS_PAGE, "Keys of a rules file"),
    (rules.Rule, FACTS_PAGE, "Keys of a rule"),
    (rules.OtherFact, FACTS_PAGE, "Keys of another fact"),
    (rules.RuleWaiver, FACTS_PAGE, "Keys of a waiver of rules"),
    (launch_rules.LaunchRuleFile, GUARD_PAGE, "Keys of a guard file"),
    (launch_rules.LaunchRule, GUARD_PAGE, "Keys of a launch rule"),
    (launch_rules.LaunchException, GUARD_PAGE, "Keys of an exception of a launch rule"),
    (submit_rules.SubmitRules, QUOTA_PAGE, "Keys of a submit file"),
    (submit_rules.QuotaSource, QUOTA_PAGE, "Keys of a quota"),
    (submit_rules.SubmitLimit, QUOTA_PAGE, "Keys of a limit"),
    (routing.RoutingPlan, FACTS_PAGE, "Keys of a routing plan"),
    (routing.Attachment, FACTS_PAGE, "Keys of nodes on a network"),
    (routing.ServerGroup, FACTS_PAGE, "Keys of a group of servers"),
]


# ---- reading pages ------------------------------------------------------------------------


def section(page: str, title: str) -> str:
    """The text of a page below a heading, up to the next heading of any level."""
    found = re.search(
        rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)",
        without_examples((DOCS / page).read_text()),
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"docs/{page} has no section {title!r}"
    return found[1]


def without_examples(text: str) -> str:
    return re.sub(r"^```.*?^```\n", "", text, flags=re.MULTILINE | re.DOTALL)


def rows(text: str, first_title: str) -> list[list[str]]:
    """The cells of the tables whose first column has that title."""
    found, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        if not line.startswith("|"):
            inside = False
        elif inside and not set(line) <= set("|- "):
            found.append(cells)
        elif cells[0] == first_title:
            inside = True
    return found


def words(cell: str) -> list[str]:
    """The words of a cell that stand in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def first_words(text: str, title: str) -> list[str]:
    return [words(row[0])[0] for row in rows(text, title)]


# ---- keys of files ------------------------------------------------------------------------


def test_every_key_is_told() -> None:
    for shape, page, title in SHAPES:
        told = first_words(section(page, title), "key")
        keys = [field.encode_name for field in msgspec.structs.fields(shape)]
        others = {
            field.encode_name
            for other, other_page, other_title in SHAPES
            if (other_page, other_title) == (page, title) and other is not shape
            for field in msgspec.structs.fields(other)
        }
        assert set(told) - others == set(keys) - others, f"docs/{page}, section {title}"
        assert set(keys) <= set(told), f"docs/{page}, section {title}"
        assert len(told) == len(set(told)), f"docs/{page}, section {title}: a key is told twice"


def test_defaults_are_those_of_the_code() -> None:
    for shape, page, title in SHAPES:
        fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
        for row in rows(section(page, title), "key"):
            field = fields.get(words(row[0])[0])
            if field is None:
                continue
            required = field.required
            assert (row[2] == "") <= (required or shape in (check_spec.Check,)), f"{title}: {row}"
            assert required <= (row[2] == ""), f"{title}: {row[0]} is required, and has a default"
            told = words(row[2])
            plain = isinstance(field.default, str | int | float) and field.default != ""
            if told and plain:
                default = case_names.show(field.default).removesuffix(".0")
                assert told[0] == default, f"{title}: {row}"


def test_every_struct_of_a_file_is_told() -> None:
    """A new part of a file needs a section here."""
    for module in (suite, machine, rehearsal_model, references, plan, score_file, rules, routing):
        shapes = {shape for shape in vars(module).values() if _is_part(shape)}
        bases = {base for shape in shapes for base in shape.__bases__}  # told with these
        assert shapes - bases <= {shape for shape, _, _ in SHAPES} | {
            suite.Test,
            references.ReferencesFile,
        }


def _is_part(shape: object) -> bool:
    return isinstance(shape, type) and issubclass(shape, FileModel) and shape is not FileModel


# ---- commands -----------------------------------------------------------------------------


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")


ALL_COMMANDS = dict(commands(seatrial, "seatrial"))


def test_every_command_and_option_is_told() -> None:
    for path, command in ALL_COMMANDS.items():
        text = section("commands.md", path)
        options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        names = {name for option in options for name in option.opts}
        told = {word for row in rows(text, "option") for word in words(row[0])}
        own = {"--help", "-h"} if path == "seatrial" else set()
        assert told == names | own, f"docs/commands.md, section {path}"
        for argument in command.params:
            if isinstance(argument, click.Argument):
                name = (argument.metavar or str(argument.name)).upper()
                name = name.removeprefix("[TAG/]").strip("[].").rstrip("]")
                assert name in text, f"docs/commands.md, section {path}: {name}"


def test_no_command_is_told_that_is_not_there() -> None:
    told = re.findall(r"^## (seatrial.*)$", (DOCS / "commands.md").read_text(), re.MULTILINE)
    assert told == [path for path in told if path in ALL_COMMANDS]
    assert set(told) == set(ALL_COMMANDS)


def test_exit_codes_of_the_help_are_told() -> None:
    told = {row[0] for row in rows(section("exit-codes.md", "Of the command"), "code")}
    helped = re.findall(r"^\s*(?:Exit codes:)?\s*(\d)  \S", seatrial.help or "", re.MULTILINE)
    assert helped == ["0", "1", "2", "3"]
    assert set(helped) | {"70", "130", "141"} == told


# ---- registries ---------------------------------------------------------------------------


def test_every_variable_is_told() -> None:
    table = rows(section(TESTS, "Variables that scripts are given"), "variable")
    told = {words(row[0])[0]: row[1] for row in table}
    expected = dict.fromkeys(BUILD_AND_RUN, "build, run") | dict.fromkeys(RUN_ONLY, "run")
    assert told == expected


def test_every_condition_of_a_side_is_told() -> None:
    table = rows(section(COMPARING, "Sides"), "condition")
    told = {name: row[1] for row in table for name in words(row[0])}
    assert {name: told[name] for name in KEYS} == KEYS
    assert set(told) - set(KEYS) == {*NUMBERS, "NAME", "param.NAME"}


def test_every_function_and_fact_is_told() -> None:
    text = section(TESTS, "Expressions")
    assert set(first_words(text, "function")) == set(_FUNCTIONS)
    assert set(first_words(text, "fact")) == set(FACTS)


def test_every_output_format_is_told() -> None:
    told = rows(section("how-to/outputs.md", "Formats"), "format")
    assert {words(row[0])[0] for row in told} == set(formats())
    for row in told:
        form = find_format(words(row[0])[0])
        assert words(row[2]) == [form.file], f"docs/how-to/outputs.md: {form.name}"
        if form.figures is not None:
            assert set(words(row[3])) <= set(form.figures), f"docs/how-to/outputs.md: {form.name}"


def test_every_page_is_told_by_its_address() -> None:
    told = {word.partition("?")[0] for word in words((DOCS / "how-to/pages.md").read_text())}
    told = {re.sub(r"[A-Z]+", "NAME", address) for address in told}
    paths = {re.sub(r"\{\w+\}", "NAME", page.path) for page in PAGES_SERVED if page.template}
    assert paths - told == set()


def members_of(kind: type[Event]) -> set[str]:
    return {about.encode_name for about in msgspec.structs.fields(kind)}


def test_every_member_of_an_event_is_told() -> None:
    told = first_words(section("events.md", "The record"), "member")
    assert set(told) == {"event"}.union(*map(members_of, EVENT_KINDS.values()))
    assert len(told) == len(set(told))


def test_every_event_is_told_with_its_members() -> None:
    table = rows(section("events.md", "Events"), "number")
    told = {words(row[1])[0]: int(row[0]) for row in table}
    assert told == {name: kind.number for name, kind in EVENT_KINDS.items()}
    assert list(told.values()) == sorted(told.values())
    for _, event, _, members in table:
        kind = EVENT_KINDS[words(event)[0]]
        common = RunEvent if issubclass(kind, RunEvent) else Event
        assert set(words(members)) == members_of(kind) - members_of(common), event


def test_every_state_is_told() -> None:
    def told(title: str) -> list[tuple[str, str]]:
        table = rows(section("events.md", title), "state")
        return [(words(row[0])[0], row[1]) for row in table]

    runs = [(state.name.lower(), line) for state, line in RUN_STATE_HELP.items()]
    assert told("States of a run") == runs
    assert told("States of a trial") == list(TRIAL_STATE_HELP.items())


def test_every_time_of_a_run_is_told_with_its_event() -> None:
    table = rows(section("events.md", "Times of a run"), "time")
    told = [words(row[0])[0] for row in table]
    times = [about.name for about in msgspec.structs.fields(RunLife) if about.type == int | None]
    assert [*told, "exit_code", "first_code"] == times
    for time, (_, _, event) in zip(told, table, strict=True):
        run = RunLife()
        run.apply(decode(b'{"time":9,"event":"%s"}' % words(event)[0].encode()))
        assert getattr(run, time) == 9


def test_every_verdict_is_told() -> None:
    table = rows(section("events.md", "Verdict codes"), "code")
    told = {int(row[0]): (words(row[1])[0], row[2]) for row in table}
    assert told == {number: (code.name, code.meaning) for number, code in CODES.items()}


def test_every_criterion_is_told_with_a_bound() -> None:
    table = rows(section(PLANS, "criteria"), "criterion")
    told = [words(row[0])[0] for row in table]
    assert told == list(get_args(plan.CriterionName))
    for name, (_, _, example) in zip(get_args(plan.CriterionName), table, strict=True):
        written = yaml.safe_load(words(example)[0])
        if name != "every_test":  # which has no bound
            assert [bound_of(name, value) for value in written.values()], example


def test_every_answer_to_a_failure_is_told() -> None:
    table = rows(section(PLANS, "What follows a failure"), "cause")
    told = {cause: row[1] for row in table for cause in words(row[0])}
    assert told == dict(ANSWERS)
    assert set(told) == set(get_args(plan.Cause))


def test_every_criterion_and_use_of_node_hours_is_told() -> None:
    titles = re.findall(r"^## (\w+_?\w*)$", (DOCS / "criteria.md").read_text(), re.MULTILINE)
    assert set(titles) - {"Results"} == set(CRITERIA)
    table = rows(section("criteria.md", "Where node-hours go"), "use")
    assert {words(row[0])[0]: row[1] for row in table} == USES


def test_every_end_state_of_slurm_is_told() -> None:
    table = rows(section("how-to/slurm.md", "Verdicts by end state"), "Slurm's state")
    told = {words(row[0])[0]: words(row[1])[0] if words(row[1]) else None for row in table}
    assert told == {
        state: None if code is None else code_of(code).name for state, code in ENDED.items()
    }


def test_the_glossary_has_few_words_each_in_one_sentence() -> None:
    table = rows((DOCS / "reference/glossary.md").read_text(), "word")
    told = [word for word, _ in table]
    assert 60 <= len(told) <= 80
    assert told == sorted(set(told), key=str.lower)
    for word, meaning in table:
        assert meaning[0].isupper() and meaning.endswith("."), word
        assert ". " not in meaning.rstrip("."), f"{word}: one sentence"
    known = rows((DOCS / "architecture.md").read_text(), "word")
    assert {word for word, _ in known} <= set(told)


# ---- links and examples -------------------------------------------------------------------


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = without_examples(page.read_text())
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = page.parent / name if name else page
            assert file.exists(), f"{page.relative_to(ROOT)}: {target}"
            if anchor:
                assert anchor in anchors(file), f"{page.relative_to(ROOT)}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    titles = re.findall(r"^#+ (.+)$", without_examples(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def examples(page: Path) -> list[tuple[str, str]]:
    """(file name, text) of the examples that are whole files."""
    blocks = re.findall(r"^```(?:yaml|python|bash)\n(.*?)^```$", page.read_text(), re.M | re.S)
    named = [(re.match(r"# (\S+\.(?:yaml|py|sh))\n", block), block) for block in blocks]
    return [(found[1], block) for found, block in named if found]


def has_plan(page: Path) -> bool:
    return any(name.startswith("plans/") for name, _ in examples(page))


WITH_EXAMPLES = [page for page in PAGES if examples(page) and not has_plan(page)]
WITH_PLANS = [page for page in PAGES if has_plan(page)]

MACHINE = """\
machine: example
scheduler: slurm
nodes:
  - {names: "n[1-2]", cores: 4}
topology: {kind: tree, levels: [{chassis: 2}, {group: 4}]}
containers: {kind: apptainer}
toolchains:
  gcc: {}
"""


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_have_no_fault(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (tmp_path / "machine.yaml").write_text(MACHINE)
    tests = [(name, text) for name, text in examples(page) if name.endswith("test.yaml")]
    for name, text in examples(page):
        if name.startswith("machines/"):
            file = tmp_path / Path(name).name
            file.write_text(text)
            assert load_machine(file).machine.machine == file.stem
        elif name == "references.yaml":
            (tmp_path / name).write_text(text)
            assert references.load(tmp_path / name).entries
    for name, text in tests:
        put(folder / "first" / name if name == "test.yaml" else folder / name, text, page)
    if tests:
        plan = prepare_trial(TrialOptions(suites=[str(folder)]), str(tmp_path / "machine.yaml"))
        require_cases(plan)
        assert {case.test for case in plan.cases} == set(plan.tests)
        assert len(plan.tests) == len(tests)


@pytest.mark.parametrize("page", WITH_PLANS, ids=lambda page: str(page.relative_to(ROOT)))
def test_plans_of_examples_have_no_fault(page: Path, tmp_path: Path) -> None:
    files = examples(page)
    for name, text in files:
        put(tmp_path / name, text, page)
    for name, text in files:
        if name.startswith("plans/"):
            written = yaml.safe_load(text)
            for document in re.findall(r"document: (\S+)", text):
                (tmp_path / name).with_name(document).touch()
            for deck in re.findall(r"(\S+): \{.*deck: \{source: (\w+)", text):
                (tmp_path / "suites/acceptance" / deck[0] / deck[1]).mkdir()
            prepared = prepare_plan(tmp_path / name)
            ran = {part.component.component for part in prepared.parts}
            alone = {each["component"] for each in written["components"] if "evidence" in each}
            assert ran == {each["component"] for each in written["components"]} - alone
            assert all(part.cases for part in prepared.parts)


def put(file: Path, text: str, page: Path) -> None:
    """Write a test, and an empty file for each that it names."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    test = yaml.safe_load(text)
    inputs = [i if isinstance(i, str) else i["source"] for i in test.get("inputs", [])]
    build = test.get("build", {})
    for name in [*build.get("sources", []), *inputs, *filter(None, [build.get("prebuilt")])]:
        (file.parent / name).parent.mkdir(exist_ok=True)
        (file.parent / name).touch()
    judges = (test.get("metrics", {}), *test.get("verify", []))
    for custom in filter(None, [each.get(key) for each in judges for key in ("python", "script")]):
        name = custom.partition(":")[0]
        (file.parent / name).write_text(dict(examples(page))[name])
