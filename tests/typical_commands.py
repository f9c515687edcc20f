"""Commands that the server of commands (``tests/command_server.py``) runs itself before it forks.

Code that has run is adapted by the interpreter: in a fork it is quicker, and writes to less of the
memory that is shared. Rules that ship are read, and their patterns compiled, once in a process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import seatrial.cli
from seatrial.judge.log_rules import shipped_log_rules
from seatrial.judge.script_check import CauseSearch
from seatrial.plugins.facts.rules import shipped_rules

COMMANDS = ("accept plan.yaml", "accept status plan.yaml", "runs")
FILES = {
    "machine.yaml": "{machine: here, nodes: [{names: here, cores: 1}], toolchains: {p: {}}}",
    "suite/test.yaml": "{app: test, run: {walltime: 1m, script: 'true'}}",
    "plan.yaml": "{plan: p, machine: machine.yaml, suites: [suite], components: [{component: c}]}",
}


def run_typical_commands() -> None:
    """Run them in this process, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, _alone_in(folder), _silence():
        for name, text in FILES.items():
            path = Path(name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for words in COMMANDS:
            sys.argv = ["seatrial", *words.split()]
            try:
                seatrial.cli.main()
            except SystemExit as end:
                assert end.code == 0, words
        sys.stdout.flush()
    shipped_rules()
    CauseSearch(shipped_log_rules())


@contextmanager
def _alone_in(folder: str) -> Iterator[None]:
    """Work in a folder, with no environment but PATH."""
    environment, here = dict(os.environ), Path.cwd()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(PATH=environment.get("PATH", os.defpath), HOME=folder)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)


@contextmanager
def _silence() -> Iterator[None]:
    """Send what this process and its children print to nowhere."""
    streams = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, stream in zip((1, 2), streams, strict=True):
            os.dup2(stream, number)
            os.close(stream)
        os.close(nowhere)
