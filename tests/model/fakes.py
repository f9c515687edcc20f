"""Programs that only answer: a folder of them as the whole PATH."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path


def program(folder: Path, name: str, answers: Mapping[str, str], otherwise: str = "exit 1") -> Path:
    """Write a program that prints an answer for each command line, in shell patterns; on any other
    it does ``otherwise``."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    cases = [f"  {line}) printf '%s\\n' {shlex.quote(text)} ;;\n" for line, text in answers.items()]
    path.write_text(f'#!/bin/sh\ncase "$*" in\n{"".join(cases)}  *) {otherwise} ;;\nesac\n')
    path.chmod(0o755)
    return path
