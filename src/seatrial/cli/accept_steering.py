"""Commands of ``seatrial accept`` that steer the trials of a plan while they are under way."""

from typing import TYPE_CHECKING, Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import plan_options, reason_option
from seatrial.lazy import LazyModule

if TYPE_CHECKING:
    from seatrial.cli import plan_change, plan_control
else:  # most of Seatrial
    plan_change = LazyModule("seatrial.cli.plan_change")
    plan_control = LazyModule("seatrial.cli.plan_control")


@click.command("pause")
@plan_options
def pause(folders: Folders, /, **chosen: Any) -> int:
    """Start nothing more, and stop the clock.

    Running jobs are waited for and judged. `resume` continues the plan.

    \b
    seatrial accept pause plan.yaml

    \b
    Exit codes:  0  the trials are paused, or their drivers were asked to
                 2  no trial of the plan is running, or usage
    """
    return plan_control.Steering(folders, **chosen).pause()


@click.command("extend")
@plan_options
@click.argument("time")
def extend(folders: Folders, /, time: str, **chosen: Any) -> int:
    """Give a sustained component more time.

    A trial that has ended continues with the next `seatrial accept PLAN`.

    \b
    seatrial accept extend plan.yaml 12h
    seatrial accept extend plan.yaml 1d --component stability

    \b
    Exit codes:  0  the trial is extended, or its driver was asked to
                 2  no trial can be extended, several can, or usage
    """
    return plan_control.Steering(folders, **chosen).extend(time)


@click.command("abandon")
@plan_options
@click.argument("reason")
def abandon(folders: Folders, /, reason: str, **chosen: Any) -> int:
    """Abandon a trial for ever, with a reason.

    Its jobs are cancelled. The next `seatrial accept PLAN` begins a new trial: TAG-2.

    \b
    seatrial accept abandon plan.yaml "the fabric was reset" --component stability

    \b
    Exit codes:  0  the trial is abandoned, or its driver was asked to
                 2  no trial can be abandoned, several can, or usage
    """
    if not reason.strip():
        raise click.BadParameter("say why the trial is abandoned", param_hint="REASON")
    return plan_control.Steering(folders, **chosen).abandon(reason)


@click.command("admit")
@plan_options
@click.argument("names", metavar="NODES|TEST")
@click.option("--reason", default="", help="Why.")
def admit(folders: Folders, /, names: str, reason: str, **chosen: Any) -> int:
    """Let excluded nodes or a stopped test run again.

    A test whose build failed cannot be admitted.

    \b
    seatrial accept admit plan.yaml n017
    seatrial accept admit plan.yaml "n[003-004]" --component stability
    seatrial accept admit plan.yaml lammps

    \b
    Exit codes:  0  admitted, or none was shut out
                 2  no trial is running, several are, a name is unknown, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).admit(names, reason)


@click.command("change")
@plan_options
@reason_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def change(folders: Folders, /, reason: str, yes: bool, **chosen: Any) -> int:
    """Have trials under way follow the plan as it is now.

    Edit the plan first. Copies, weights, shares, caps, stagger, throttles, blackouts, retry,
    exclude, watch, coming outages and the duration take effect from now on. The difference is
    shown, and asked about. Criteria are judged over the spans: by each plan for as long as it held.

    What contradicts what ran is refused, with its place in the plan: other tests, a duration that
    has passed, a change of the machine or of what is built.

    \b
    seatrial accept change plan.yaml --reason "CM4 opens too much"

    \b
    Exit codes:  0  changed, or nothing to change
                 1  not changed, as you said no
                 2  the change is refused, nothing is under way, or usage
                 3  a driver has not answered yet
    """
    return plan_change.Changing(folders, **chosen).change(reason, yes)


@click.command("hold")
@plan_options
@click.argument("test", metavar="TEST")
@reason_option
def hold(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Start no run of a test until it is released.

    `heavy` holds all tests whose I/O is not light, as a closed gauge does. Running jobs go on,
    runs that wait at the scheduler are recalled. The clock runs on, and criteria count the time.

    \b
    seatrial accept hold plan.yaml lammps --reason "its input is wrong"
    seatrial accept hold plan.yaml heavy --reason "the forecast is late"

    \b
    Exit codes:  0  held
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).hold(test, reason)


@click.command("release")
@plan_options
@click.argument("test", metavar="TEST")
@click.option("--reason", default="", help="Why.")
def release(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Let a held test start again.

    \b
    seatrial accept release plan.yaml heavy

    \b
    Exit codes:  0  released, or it was not held
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).release(test, reason)


@click.command("stop")
@plan_options
@click.argument("test")
@reason_option
def stop(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Start no run of a test any more.

    As if it had failed too often: its component goes on without it, and `admit` takes it in again.

    \b
    seatrial accept stop plan.yaml lammps --reason "its fault, ticket 812"

    \b
    Exit codes:  0  stopped
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).stop(test, reason)


@click.command("exclude")
@plan_options
@click.argument("nodes")
@reason_option
def exclude(folders: Folders, /, nodes: str, reason: str, **chosen: Any) -> int:
    """Start no more runs on nodes.

    Runs there go on; those that wait at the scheduler are recalled. `admit` lets them back in.

    \b
    seatrial accept exclude plan.yaml "n[017-018]" --reason "the fan is loud"

    \b
    Exit codes:  0  excluded
                 2  no trial is under way, several are, an unknown node, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).exclude(nodes, reason)


COMMANDS = (pause, extend, abandon, admit, change, hold, release, stop, exclude)
