"""The launch guard of the site, asked before a run is submitted."""

from __future__ import annotations

from pathlib import Path

from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.guard.own_runs import GuardFailed, LaunchSize, named_programs, refusal
from seatrial.suite.model import Case, Test
from seatrial.trial.tasks import Tasks


class LaunchGuard:
    """Tells why runs are refused. Runs of one case are told the same, until the site writes its
    guard again."""

    def __init__(self, folder: str, tasks: Tasks) -> None:
        """``folder``: that of `seatrial guard write`; "" where the site has no guard."""
        self._program = Path(folder) / "guard" if folder else None
        self._tasks = tasks
        self._told: dict[tuple[str, int], str] = {}
        self._failed = False

    async def refusal(self, case: Case, test: Test, build: str) -> str:
        """Return why the guard refuses the program of a run, "" if it lets the run start. A guard
        that is not there or fails lets it start; people are told, once. ``build``: the directory of
        its build."""
        if self._program is None:
            return ""
        try:
            made = self._program.stat().st_mtime_ns
        except OSError as error:
            return self._without(GuardFailed(f"{self._program}: {error.strerror}"))
        if (key := (case.id, made)) not in self._told:
            try:
                self._told[key] = await self._asked(self._program, case, test, build)
            except GuardFailed as error:
                return self._without(error)
        return self._told[key]

    async def _asked(self, program: Path, case: Case, test: Test, build: str) -> str:
        variables = {**test.bound(case.parameters), **({"BUILD": build} if build else {})}
        size = LaunchSize(case.tasks, case.nodes, case.threads)

        def ask() -> str:
            return refusal(program, named_programs(test.run.script, variables), size)

        return await run_in_thread(ask, "guard")

    def _without(self, error: GuardFailed) -> str:
        if not self._failed:
            self._failed = True
            text = f"the launch guard cannot be asked: {error}; runs start without it"
            self._tasks.alert("guard", "", text)
        return ""
