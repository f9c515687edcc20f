"""A public class name means one thing in the whole package."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import seatrial

SOURCE = Path(seatrial.__file__).parent
CLASS = re.compile(r"^class ([^\W_]\w*)", re.MULTILINE)


def public_classes(text: str) -> list[str]:
    """The names of the public classes at the top level of a module."""
    return CLASS.findall(text)


def shared_names() -> dict[str, list[str]]:
    """The modules of each public class name that several modules define."""
    modules = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in public_classes(path.read_text()):
            modules[name].append(str(path.relative_to(SOURCE)))
    return {name: found for name, found in modules.items() if len(found) > 1}


def test_a_public_class_name_is_unique_in_the_package() -> None:
    wrong = [
        f"{name} is a class in {' and in '.join(found)}: say which one it is in its name"
        for name, found in shared_names().items()
    ]
    assert not wrong, "\n".join(wrong)


def test_a_class_of_the_top_level_is_seen_and_others_are_not() -> None:
    text = "class A: ...\nclass _B: ...\ndef f():\n    class C: ...\n"
    assert public_classes(text) == ["A"]
