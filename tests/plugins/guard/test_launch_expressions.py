"""Expressions of launch rules: what is refused, and with which words. What their C says of programs
is tested with the guard (test_program.py)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.escaping import c_text
from seatrial.model.expressions import ExpressionError
from seatrial.plugins.guard.launch_rules import FACTS, LaunchRule, as_c, rules_header
from seatrial.plugins.guard.program import SOURCE

FAULTS = {
    "mpi": "is no condition",
    "nodes + 1": "is no condition",
    'family == "x"': "family is no fact; path, name",
    "mpi_version < 3.0": "not allowed here",
    "mpi_version < 3": 'versions and words are in quotes, such as "3.0"',
    'mpi < "mpich"': "mpi is a word",
    "not mpi": "is not a condition such as",
    'tasks + mpi == "x"': "'mpi' is not a number",
    "mpi in name": "write [a, b] behind in",
    "mpi in []": "write [a, b] behind in",
    "max(tasks, 2) > 1": "not allowed here",
    "tasks == 2 == (nodes > 1)": "cannot be compared",
    "__import__('os')": "is not a function",
    "1 in needed": 'is no name, such as "libga.so.3"',
    "tasks >": "is not an expression",
    "tasks > True": "True is no fact",
    "True": "True is no fact",
    'name == "a\\0b"': "not allowed here",
}
# Conditions that hold for a program of four tasks with glibc 2.36, and those that do not.
TRUE = [
    "tasks == 4 and nodes * 2 < tasks",
    "1 <= nodes < 2",
    "not (tasks != 4)",
    'mpi in ["mpich", "openmpi"]',
    'mpi not in ("intel-mpi",)',
    'glibc > "2.4" and glibc >= "2.36" and "2.36.1" > glibc',
    'glibc == "2.36" or 1 == 2',
    'mpi_version == ""',
    'name == "a\\"b\\\\n?%s\\u00e9"',
    '"libga.so.3" in needed and "libc.so.6" in needed',
    '"libga.so" not in needed',
]
FALSE = [
    "tasks - 4 > 0",
    'mpi_version < "9"',
    '"libga" in needed or "libga.so.3 libc.so.6" not in needed or needed == ""',
    'mpi_version != "9"',
    'glibc in ["2.35", "2.37"]',
    "tasks == 4 and (nodes == 3 or threads == 2)",
]


@pytest.mark.parametrize("text", FAULTS)
def test_what_is_no_condition_is_told(text: str) -> None:
    with pytest.raises(ExpressionError) as told:
        as_c(text)
    assert FAULTS[text] in str(told.value)


def test_conditions_hold_as_they_say(tmp_path: Path) -> None:
    """All of them in one program, which is compiled with every warning."""
    texts = [*TRUE, *FALSE]
    rules = [LaunchRule(name=f"r{i}", message="m", warn=text) for i, text in enumerate(texts)]
    (tmp_path / "rules.h").write_text(rules_header(rules, "/dev/null"))
    name = c_text('a"b\\n?%sé')
    test = f"""
    #define main guard
    #include "{SOURCE}"
    #undef main
    int main(void) {{
        static struct facts facts = {{.mpi = "mpich", .glibc = "2.36", .name = {name},
                                     .needed = " libga.so.3 libc.so.6 ",
                                     .tasks = 4, .nodes = 1, .threads = 1}};
        (void)guard;
        for (const struct rule *each = RULES; each->name; each++)
            putchar(each->holds(&facts) ? '1' : '0');
        return 0;
    }}"""
    (tmp_path / "test.c").write_text(test)
    line = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I.", "-o", "test", "test.c"]
    subprocess.run(line, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "test"], capture_output=True, text=True).stdout
    assert said == "1" * len(TRUE) + "0" * len(FALSE)


def test_every_fact_is_a_field_of_the_program() -> None:
    for fact, (kind, _) in FACTS.items():
        as_c({"number": f"{fact} > 1", "truth": fact}.get(kind, f'{fact} == "x"'))
    source = SOURCE.read_text()
    declared = source[source.index("struct facts {") : source.index("struct rule {")]
    assert all(f" {fact}" in declared for fact in FACTS)
