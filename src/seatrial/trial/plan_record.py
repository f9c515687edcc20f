"""Makes the record of a trial, real or rehearsed, from a prepared component of a plan."""

import os

from msgspec.structs import replace

from seatrial import __version__
from seatrial.account import user_name
from seatrial.file_model import Span
from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine
from seatrial.machine.rehearsal_model import MachineModel
from seatrial.plan.prepare import PreparedComponent, PreparedPlan
from seatrial.rules.load import own_rules
from seatrial.suite.inputs import digests
from seatrial.suite.known_failures import known_failures_of
from seatrial.trial.options import TrialOptions
from seatrial.trial.record import Record
from seatrial.trial.suite_record import MAX_LEFT_OUT


def record_of(
    plan: PreparedPlan,
    part: PreparedComponent,
    tag: str,
    created: int,
    seed: int | None = None,
    rebuild: bool = False,
) -> Record:
    """Return the record of a component in a phase; ``created`` in ns. With a ``seed`` the trial is
    a rehearsal; with ``rebuild`` it takes no build from other trials."""
    return Record(
        tag=tag,
        created=created,
        version=__version__,
        user=user_name(),
        host=os.uname().nodename,
        asked=TrialOptions(suites=part.suites, rebuild=rebuild),
        machine=part.machine if seed is None else as_rehearsed(part.machine),
        references=str(plan.site.references.absolute()),
        expected=plan.expected,
        inputs={} if seed is not None else digests(part.tests.values()),
        tests=part.tests,
        policy=part.policy,
        plan=plan.plan.plan,
        plan_file=os.fspath(plan.path),
        plan_text=plan.path.read_text(errors="replace"),  # plain: the user's own plan
        component=part.component,
        phase=part.phase,
        alerts=plan.plan.alerts,
        rehearsed=seed is not None,
        seed=seed or 0,
        known_failures=known_failures_of(
            part.tests, plan.plan.known_failures, part.machine.known_failures
        ),
        left_out=part.skipped[:MAX_LEFT_OUT],
        rules=own_rules(part.tests.values()),
        machine_nodes=len(node_names(plan.site.machine)),
        assumed=[] if seed is None else plan.plan.rehearsal.assumed,
    )


def as_rehearsed(machine: Machine) -> Machine:
    """Return the machine as it is rehearsed: polled as often as it is for real; without a scheduler
    the delays of one are 0. What its file says of rehearsals comes first."""
    model, defaults = machine.rehearsal, MachineModel()
    delays: dict[str, Span] = {"poll": Span(machine.batch.poll.written)}
    if machine.scheduler == "local":
        delays = dict.fromkeys(("submit_delay", "start_delay", "poll"), Span(0))
    told = {key: at for key, at in delays.items() if getattr(model, key) == getattr(defaults, key)}
    return replace(machine, rehearsal=replace(model, **told))
