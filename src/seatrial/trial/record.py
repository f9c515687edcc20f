"""The record of a trial, ``trial.json``: what was asked."""

from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import Struct

from seatrial.conduct.policy import Policy
from seatrial.decoding import decoder
from seatrial.lazy import hashlib
from seatrial.machine.facts import groups_of, node_names
from seatrial.machine.failures import KnownFailure
from seatrial.machine.model import Machine
from seatrial.plan.model import Component, Tell
from seatrial.rules.model import RuleFile
from seatrial.suite.model import Keep, KeepWord, Test
from seatrial.suite.tune_file import TuneFile
from seatrial.trial.options import TrialOptions
from seatrial.trial.record_check import require_record
from seatrial.verify.references import Reference, References, loads


class GivenFrom(Struct, frozen=True, kw_only=True):
    """Where the figures of a trial came from that nobody ran: a file, who brought it in, and when
    (ns)."""

    file: str
    sha256: str
    by: str
    on: int


class ImportedFrom(Struct, frozen=True, kw_only=True):
    """Where the runs of a trial came from that another ``tool`` made: its file or folder, who
    brought them in, and when (ns)."""

    tool: str
    file: str
    by: str
    on: int


class Record(Struct, frozen=True, kw_only=True, dict=True):
    """The record of a trial (``trial.json``), written once when the trial is created. ``created``
    is in ns since the epoch. ``references`` is the file of the machine's references, ``expected``
    has its contents at that time (version 0.1 wrote its text), so that a trial judges all its runs
    by the same references. ``inputs`` are the hashes of the input files of the tests by their
    paths, "" for files that are too large. A trial of a plan has the plan's name and file, the
    component, the phase and the policy; ``plan_text`` is the plan's file as it was. A ``rehearsed``
    trial ran in virtual time on a simulated machine, with random numbers from its ``seed``;
    ``assumed`` are the assumptions of its plan, in words. ``cases_bytes`` and ``cases_sha256`` are
    the size and the checksum of ``cases.jsonl``: a file that was cut is noticed (version 0.1 wrote
    neither). ``left_out`` are the first cases and tests that could not run on the machine, with the
    reasons. ``rules`` are a site's own, by which facts of nodes are judged.
    Of a trial whose figures somebody else gave, ``given`` says who; nothing of it runs.
    ``imported`` says which other tool made the runs of a trial.
    Of a tuning, ``tuning`` is its file and ``tuning_text`` the file's text.
    ``machine_nodes`` is how many nodes the whole machine of a plan has; a component and a phase may
    have fewer (0: unknown)."""

    tag: str
    created: int
    version: str
    user: str
    host: str
    asked: TrialOptions
    machine: Machine
    references: str
    tests: dict[str, Test]
    expected: list[Reference] | str = []
    inputs: dict[str, str] = {}
    policy: Policy = Policy()
    plan: str = ""
    plan_file: str = ""
    plan_text: str = ""
    component: Component | None = None
    phase: str = ""
    alerts: Tell | None = None
    rehearsed: bool = False
    seed: int = 0
    assumed: list[str] = []
    cases_bytes: int = -1
    cases_sha256: str = ""
    left_out: list[tuple[str, str]] = []
    rules: list[RuleFile] = []
    given: GivenFrom | None = None
    imported: ImportedFrom | None = None
    known_failures: list[KnownFailure] = []
    tuning: TuneFile | None = None
    tuning_text: str = ""
    machine_nodes: int = 0

    def keep_of(self, test: str) -> KeepWord | Keep:
        """Return which outputs of a test's runs stay: its component says, or else the test."""
        of_component = self.component.keep if self.component is not None else None
        return of_component or self.tests[test].keep

    @cached_property
    def _decoded(self) -> References:
        expected = self.expected
        if isinstance(expected, str):
            return loads(expected, Path(self.references)) if expected else References()
        return References.of(expected)


def references_of(record: Record) -> References:
    """Return the references that a trial judges by, decoded once. Raises InvalidFiles."""
    return record._decoded


def known_by(record: Record, policy: Policy) -> list[KnownFailure]:
    """Return the known failures of a trial by its policy of some time: those that it was made with,
    or those that people gave under way."""
    changed = policy.known_failures
    return record.known_failures if changed is None else changed


def checksum_of(references: References) -> str:
    """Return the SHA-256 of references, whatever the layout of their file."""
    return hashlib.sha256(msgspec.json.encode(references.entries)).hexdigest()


def record_in(data: bytes) -> Record:
    """Decode a record. Raises ValueError for one whose machine names no nodes, or that has times
    or numbers which no trial has."""
    record = decoder(Record).decode(data)
    node_names(record.machine)
    groups_of(record.machine)
    require_record(record.policy, record.machine)
    return record
