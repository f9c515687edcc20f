"""Makes the record of a trial from a prepared suite.

prepared = prepare_trial(asked, machine_name)
folder = create(trials, suite_record(prepared, tag), prepared.cases)
"""

import os
import time

from msgspec.structs import replace

from seatrial import __version__
from seatrial.account import user_name
from seatrial.decide.place import placing_of
from seatrial.execute.plan.policy import sampled_of
from seatrial.execute.prepare import Prepared
from seatrial.execute.trial_record import Record
from seatrial.judge.log_rules import own_rules
from seatrial.model.build import digests
from seatrial.model.known_failures import known_failures_of
from seatrial.model.policy import without_plan

MAX_LEFT_OUT = 1000  # in a record


def suite_record(prepared: Prepared, tag: str) -> Record:
    """Return the record of a trial of a prepared suite."""
    used = {case.test for case in prepared.cases}
    tests = {name: test for name, test in prepared.tests.items() if name in used}
    groups, allocations = prepared.groups, prepared.asked.allocations
    own = without_plan(tests, prepared.cases)
    if placing := placing_of(prepared.site.machine, tests, prepared.cases):
        own = replace(own, placing=placing, nodes=len(placing.topology.nodes))
    if sampled := sampled_of(None, prepared.site.machine):
        own = replace(own, sampled=sampled)
    return Record(
        tag=tag,
        created=time.time_ns(),
        version=__version__,
        user=user_name(),
        host=os.uname().nodename,
        asked=prepared.asked,
        machine=prepared.site.machine,
        references=str(prepared.site.references.absolute()),
        expected=prepared.expected,
        inputs=digests(tests.values()),
        tests=tests,
        policy=replace(own, bundle_of=groups, allocations=allocations) if groups else own,
        left_out=prepared.skipped[:MAX_LEFT_OUT],
        rules=own_rules(tests.values()),
        known_failures=known_failures_of(tests, of_machine=prepared.site.machine.known_failures),
    )
