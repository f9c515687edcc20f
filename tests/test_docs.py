"""The documents: links lead somewhere, and examples have no fault."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest
import yaml
from tools.docs_reference import reference_pages

from seatrial.execute.plan.prepare import prepare_plan
from seatrial.execute.prepare import prepare_trial, require_cases
from seatrial.judge import references
from seatrial.judge.formats import formats
from seatrial.model.kinds import criterion_kinds
from seatrial.model.machine_file import load_machine
from seatrial.model.test import TrialOptions
from seatrial.show.web.routes import pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("suites/*/README.md")])
MAX_WORDS = 60_000
MAX_LINE = 120


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


def words(text: str) -> list[str]:
    """The words of a text that stand in backticks."""
    return re.findall(r"`([^`]+)`", text)


def test_pages_are_few_words_in_short_lines() -> None:
    text = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))
    assert len([word for word in text.split() if re.search(r"[A-Za-z0-9]", word)]) < MAX_WORDS
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue
        for line in without_examples(page.read_text()).splitlines():
            is_prose = not line.startswith(("|", "    ")) and "](" not in line
            assert len(line) <= MAX_LINE or not is_prose, f"{page.relative_to(ROOT)}: {line}"


# Files of other products, which our sources name as theirs.
OF_OTHERS = {
    "harness/libraries/status_file.py",
    "lib/pavilion/result/base.py",
    "machine_types/base_machine.py",
}


def test_the_files_that_sources_name_are_there() -> None:
    named = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sh|c))`")
    sources = list((ROOT / "src").rglob("*.py"))
    files = [*(ROOT / "src").rglob("*.*"), *ROOT.glob("tools/*.py"), *ROOT.glob("bench/*.py")]
    there = "\n".join(f"/{file.relative_to(ROOT)}" for file in files) + "\n"
    missing = {
        f"{source}: {name}"
        for source in sources
        for name in named.findall(source.read_text())
        if f"/{name}\n" not in there and name not in OF_OTHERS
    }
    assert not missing


@pytest.mark.parametrize(
    ("page", "title", "names"),
    [
        ("how-to/plans.md", "criterion", criterion_kinds()),
        ("how-to/outputs.md", "format", formats()),
    ],
)
def test_each_criterion_and_format_has_its_row(page: str, title: str, names: Iterable[str]) -> None:
    told = [words(cells[0]) for cells in rows((DOCS / page).read_text(), title)]
    assert set(names) <= set(chain.from_iterable(told))


def test_every_page_that_is_served_has_its_address_told() -> None:
    told = {word.partition("?")[0] for word in words((DOCS / "how-to/pages.md").read_text())}
    told = {re.sub(r"[A-Z]+", "NAME", address) for address in told}
    paths = {re.sub(r"\{\w+\}", "NAME", page.path) for page in pages() if page.template}
    assert paths - told == set()


def test_the_glossary_has_few_words_each_in_one_sentence() -> None:
    table = rows((DOCS / "reference/glossary.md").read_text(), "word")
    told = [word for word, _ in table]
    assert 60 <= len(told) <= 80
    assert told == sorted(set(told), key=str.lower)
    for word, meaning in table:
        assert meaning[0].isupper() and meaning.endswith("."), word
        assert ". " not in meaning.rstrip("."), f"{word}: one sentence"


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
                known = anchors(file.read_text())
                assert anchor in known, f"{page.relative_to(ROOT)}: {target}"


def test_links_of_the_reference_lead_somewhere() -> None:
    for _, made in reference_pages():
        for place, text in made.items():
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                name, _, anchor = target.partition("#")
                if name:
                    assert (DOCS / "reference" / place).parent.joinpath(name).exists(), target
                else:
                    assert anchor in anchors(text), f"{place}: {target}"


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as GitHub and GitLab make them."""
    titles = re.findall(r"^#+ (.+)$", without_examples(text), re.MULTILINE)
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
  - {names: "n[1-2]", cores: 128}
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
