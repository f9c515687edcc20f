"""Variables of the job in which a driver runs. They must not reach the jobs that it submits: a
scheduler passes the environment of the command that submits, and sets only some of them anew."""

import re
from collections.abc import Mapping
from functools import cache

from seatrial.machine.schedulers import schedulers


def without_outer_job(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of a job that a scheduler started."""
    always, given = _patterns()
    patterns = [always, *(pattern for name, pattern in given.items() if name in environment)]
    return {
        name: value
        for name, value in environment.items()
        if not any(pattern.fullmatch(name) for pattern in patterns)
    }


@cache
def _patterns() -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    """Return the variables that only schedulers set, and by a variable that is in each job of one
    those that users set as well: in a job they are what it was given. HOSTNAME is kept by bash, and
    would be that of the submitting host."""
    known = schedulers().values()
    always = "|".join(filter(None, ["HOSTNAME", *(each.outer_variables for each in known)]))
    given = dict(filter(None, (each.given_in_jobs for each in known)))
    return re.compile(always), {name: re.compile(each) for name, each in given.items()}
