"""The runs of a trial that have no verdict yet, each with its job and what its directory needs."""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from seatrial.backends.protocol import Job
from seatrial.conduct.commands import Launch
from seatrial.errors import TrialError
from seatrial.file_origin import origin_of
from seatrial.files import opened_folder
from seatrial.runs.script import RunPlace, ScriptWriter
from seatrial.trial.folder import TrialFolder
from seatrial.trial.ledger import Ledger
from seatrial.trial.staging import Room, Staging


class Attempt(NamedTuple):
    """A run without a verdict: the launch that asked for it, and its job."""

    launch: Launch
    job: Job


class Attempts:
    """Makes the jobs of runs. ``of`` keeps them, by run, until the runs have their verdicts."""

    def __init__(self, folder: TrialFolder, ledger: Ledger, staging: Staging) -> None:
        self._folder = folder
        self._record = ledger.record
        self._cases = ledger.conductor.state.cases
        self._staging = staging
        self._scripts = ScriptWriter(self._record.machine, self._record.tag)
        self._test_scripts = {name: str(folder.script(name)) for name in self._record.tests}
        self._facts = str(folder.facts)
        self._builds: dict[str, str] = {}  # directories by key
        self.of: dict[str, Attempt] = {}

    def begin(self, launch: Launch, path: str = "") -> Job:
        """Return the job of a run. ``path`` is the directory of a run that was created before, by
        the journal; it counts where that is not in the trial's folder."""
        case = self._cases[launch.case]
        usual = self._staging.path(case.test, launch.run_id, launch.target)
        own = bool(path) and bool(self._staging.place(case.test, launch.target).file_system)
        job = Job(
            run_id=launch.run_id,
            path=Path(path) if own else usual,
            nodes=case.nodes,
            tasks=case.tasks,
            tasks_per_node=case.tasks_per_node,
            threads=case.threads,
            walltime=case.walltime,
            node=launch.nodes or case.node,
            exclusive=case.exclusive,
            features=tuple(self._record.tests[case.test].requires.features),
            avoid=launch.avoid,
            options=case.job,
            file_system=launch.target or self._staging.file_system(case.test),
            bundle=launch.bundle,
            at_once=case.at_once,
        )
        self.of[launch.run_id] = Attempt(launch, job)
        return job

    def room(self, run_id: str) -> Room:
        """Return what is to be made for a run: its directory, and its script there."""
        launch, job = self.of[run_id]
        case = self._cases[launch.case]
        build = self.build(case.build)
        own = self._test_scripts[case.test]
        place = RunPlace(run_id, str(job.path), build, own, self._facts, launch.nodes)
        script = self._scripts.job_script(self._record.tests[case.test], case, place)
        target = self._staging.place(case.test, launch.target)
        return Room(case, job.path, target, script, launch.nodes, build)

    def build(self, key: str) -> str:
        """Return the directory of a build: where it was made, as it may hold its own path. "" where
        there is no build. Raises TrialError for one of another user: an earlier version used
        those."""
        if key and key not in self._builds:
            link = self._folder.builds / key
            place = os.path.realpath(link)
            if link.is_symlink():
                _require_own(link, Path(place))
            self._builds[key] = place
        return self._builds.get(key, "")


def _require_own(link: Path, place: Path) -> None:
    for path in (place, *place.parents[:2]):  # N, KEY-FOUND and the folder of builds
        with contextlib.suppress(FileNotFoundError), opened_folder(path) as opened:
            if other := origin_of(opened, path).other:
                raise TrialError(
                    f"{link}: it leads to a build that is not yours: {other}; start a new trial"
                )
