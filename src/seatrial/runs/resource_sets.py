"""What jsrun is told: resource sets, which are cores and GPUs of a host with tasks in them.

Options by the manual of jsrun (IBM Job Step Manager): ``-n`` is the number of resource sets; each
has ``-a`` tasks, ``-c`` cores and ``-g`` GPUs; a host has ``-r`` of them. ``-d packed``: ranks
fill one after the other. ``-b packed:n``: a task is bound to n cores.
"""

from __future__ import annotations

import re

from seatrial.machine.model import Launcher
from seatrial.suite.model import Case

_SETS = re.compile(r"(?:^|\s)(?:-[nacgrp]\s*\d|--(?:nrs|np|tasks_per_rs|cpu_per_rs|gpu_per_rs)\b)")
_BINDING = re.compile(r"(?:^|\s)(?:-b|--bind\b)")


def jsrun(launcher: Launcher, case: Case) -> list[str]:
    """Return the options of jsrun: a resource set for each task; or one for each node, where its
    tasks share GPUs. None where the machine's options tell resource sets."""
    options = " ".join(launcher.options)
    if _SETS.search(options):
        return []
    shared = case.job.gpus_per_node
    sets, tasks, per_host = case.tasks, 1, case.tasks_per_node
    if shared:
        sets, tasks, per_host = case.nodes, case.tasks_per_node, 1
    words = ["-n", str(sets), "-a", str(tasks), "-c", str(tasks * case.threads)]
    words += ["-g", str(shared or case.job.gpus_per_task), "-r", str(per_host), "-d", "packed"]
    if _BINDING.search(options):
        return words
    return [*words, "-b", "none" if case.placement.bind == "none" else f"packed:{case.threads}"]
