"""`usage import sacct`, beside commands that stand for Slurm's: slow, wrong and dead ones."""

from __future__ import annotations

import gzip
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from seatrial.errors import BackendError
from seatrial.plugins.usage.archive import Archive
from seatrial.plugins.usage.jobs import Chosen, Jobs, read_jobs
from seatrial.plugins.usage.sources.sacct import Commands, numbers_of, text_of
from seatrial.results.store.ingest import synced
from tests.plugins.usage.test_sacct_rows import RECORD, saved
from tests.programs import Done, Workplace

HOUR, DAY = 3600, 86400
ASKS = "plugins.usage.sources.sacct"

# Prints the rows of a file, each with its span, that meet the span which is asked for. What stands
# in ``does`` is done first.
SACCT = r"""#!/bin/bash
here=$(dirname "$0")
case " $* " in *" --helpformat "*) cat "$here/fields"; exit;; esac
for word; do case $word in
  --format=*) format=${word#*=};; --delimiter=*) between=${word#*=};;
  --starttime=*) since=$(date -u -d "${word#*=}Z" +%s);; --state=*) state=yes;;
  --endtime=*) until=$(date -u -d "${word#*=}Z" +%s);; --jobs=*) jobs=${word#*=};;
esac; done
echo "$*" >> "$here/asked"
. "$here/does"
printf '%s\n' "${format//,/$between}$between"
[ -n "$state" ] && rows=$here/never || rows=$here/rows
[ -n "$jobs" ] && rows=$here/late
[ -e "$rows" ] || exit 0
while IFS= read -r line; do
  from=${line%% *} line=${line#* } to=${line%% *} line=${line#* }
  if [ -n "$jobs" ] || { ((from < until)) && ((to >= since)); }; then
    printf '%s\n' "${line//|/$between}$between"
  fi
done < "$rows"
"""
OTHERS = {
    "sacctmgr": 'case "$*" in *configuration*) cat "$(dirname "$0")/configuration";;'
    ' *adminlevel*) [ -e "$(dirname "$0")/level" ] && echo Operator || echo None;;'
    " *) echo emu;; esac",
    "sdiag": 'echo "DBD Agent queue size: $(cat "$(dirname "$0")/backlog")"',
}


class Slurm:
    """Commands in place of Slurm's, on the PATH of a workplace."""

    def __init__(self, place: Workplace) -> None:
        self.place = place
        self.folder = place.folder / "slurm"
        self.folder.mkdir()
        for name, text in {"sacct": SACCT, **OTHERS}.items():
            (self.folder / name).write_text(text if text[0] == "#" else f"#!/bin/bash\n{text}\n")
            (self.folder / name).chmod(0o755)
        self.write(fields=" ".join(RECORD), does="", backlog="0", configuration="")
        place.env["PATH"] = f"{self.folder}:/usr/bin:/bin"

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(f"{text}\n")

    def have(self, *changes: dict[str, str], file: str = "rows") -> None:
        """Have these records; each is seen from its submission to its end."""
        rows = [RECORD | change for change in changes]
        lines = [line.rstrip("\n") for line in saved(*changes)[1:]]
        spans = [
            f"{row['Submit']} {row['End'] if row['End'].isdigit() else 1 << 40}" for row in rows
        ]
        both = zip(spans, lines, strict=True)
        (self.folder / file).write_text("".join(f"{span} {line}\n" for span, line in both))

    def ask(self, *words: str) -> Done:
        return self.place.seatrial("usage", "import", "sacct", "-m", "emu", *words)

    def asked(self) -> list[str]:
        file = self.folder / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def jobs(self) -> Jobs:
        with synced(self.place.trials.parent / "store.sqlite", self.place.trials) as store:
            return read_jobs(store, Chosen(machine="emu"))

    def states(self) -> dict[str, str]:
        """The state of each job."""
        jobs = self.jobs()
        names, states = jobs.words["job"], jobs.words["state"]
        return {
            names.names[name]: states.names[state]
            for name, state in zip(names.codes, states.codes, strict=True)
        }

    def spans(self) -> list[tuple[int, int]]:
        """The spans that are covered."""
        archive = Archive(self.place.trials, "emu")
        return sorted((about.since, about.until) for about in archive.headers().values())


@pytest.fixture
def slurm(place: Workplace) -> Slurm:
    return Slurm(place)


def at(hours_ago: float, lasts: float | None = 1, **more: str) -> dict[str, str]:
    """A job that was submitted and started then, in h."""
    start = int(time.time() - hours_ago * HOUR)
    end = str(start + int(lasts * HOUR)) if lasts is not None else "Unknown"
    state = {} if lasts is not None else {"State": "RUNNING"}
    times = {"Submit": str(start), "Eligible": str(start), "Start": str(start), "End": end}
    return {**times, **state, **more}


def job(number: int, **more: str) -> dict[str, str]:
    return {"JobID": str(number), "JobIDRaw": str(number), **more}


def test_windows_follow_each_other_and_running_jobs_are_corrected(slurm: Slurm) -> None:
    slurm.have(job(1) | at(90), job(2) | at(50), job(3) | at(1, None))
    done = slurm.ask()
    assert done.code == 2 and "say from when on, e.g. --since 30d" in done.err
    done = slurm.ask("--since", "30d")
    assert done.code == 0, done.said
    assert slurm.states() == {"1": "completed", "2": "completed", "3": "running"}
    spans = slurm.spans()
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    # Windows without a job before the first one are not said to be covered.
    assert spans[0][1] > time.time() - 90 * HOUR > spans[0][0] > time.time() - 30 * DAY
    asked = slurm.asked()
    assert not any("T" not in line.partition("--starttime=")[2] for line in asked)
    assert max(line.count("--jobs=") for line in asked) == 0

    # The end of job 3 was recorded late: no window shows it, so it is asked for by its id.
    slurm.have(job(4) | at(0.1, 0.05))
    slurm.have(job(3) | at(1, 0.2), file="late")
    assert slurm.ask().code == 0
    assert slurm.states() == {"1": "completed", "2": "completed", "3": "completed",
                              "4": "completed"}  # fmt: skip
    assert "--jobs=3 " in slurm.asked()[-1]
    assert slurm.ask().code == 0
    assert not any("--jobs=" in line for line in slurm.asked())


def test_a_job_that_the_database_forgot_is_asked_for_once(slurm: Slurm) -> None:
    slurm.have(job(3) | at(5, None))
    assert slurm.ask("--since", "2d").code == 0
    slurm.have(job(4) | at(0.1, 0.05))
    slurm.asked()
    for number in (1, 0):
        assert slurm.ask().code == 0
        assert sum("--jobs=3 " in line for line in slurm.asked()) == number


def test_jobs_that_were_never_eligible_are_asked_for(slurm: Slurm) -> None:
    held = {"Eligible": "Unknown", "Start": "None", "State": "CANCELLED by 1000"}
    slurm.have(job(1) | at(5))
    slurm.have(job(1) | at(5), job(2) | at(4) | held, file="never")
    assert slurm.ask("--since", "2d").code == 0
    assert slurm.states() == {"1": "completed", "2": "cancelled"}
    assert len(slurm.jobs()) == 2


def test_a_slow_window_is_asked_in_halves(slurm: Slurm) -> None:
    slurm.place.constants = {f"{ASKS}.ANSWER_S": 0.8}
    slurm.have(job(1) | at(47), job(2) | at(1))
    slurm.write(does="((until - since > 50000)) && sleep 60")
    done = slurm.ask("--since", "2d", "--no-steps")
    assert done.code == 0, done.said
    assert len(slurm.jobs()) == 2
    lengths = [until - since for since, until in slurm.spans()]
    assert max(lengths) <= 50000 and sum(lengths) == pytest.approx(2 * DAY, abs=10)
    assert all("--allocations" in line for line in slurm.asked())


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("sleep 60", "sacct did not answer in"),
        ("exit 1", "sacct failed: exit code 1"),
        (
            "echo 'sacct: error: slurm_persist_conn_open: failed to open' >&2; exit 0",
            "sacct failed: sacct: error: slurm_persist_conn_open",
        ),
        ("exit 0", "sacct answered '', not what it was asked for"),
        ("format=JobID,State", "sacct answered 'JobID<"),
        ("echo oops", "sacct answered 'oops', not what it was asked for"),
        ("trap 'echo slurmdbd: lost connection' EXIT", "'slurmdbd: lost connection' is no record"),
        ("trap 'printf 12%s13 $between' EXIT", "not what it was asked for"),
    ],
)
def test_an_answer_that_is_none_is_a_gap(slurm: Slurm, does: str, words: str) -> None:
    """The days before the bad answer are kept, and the next import goes on from there."""
    slurm.place.constants = {
        f"{ASKS}.ANSWER_S": 0.8,
        f"{ASKS}.SHORTEST_WINDOW_S": DAY,
        f"{ASKS}.LONGEST_WINDOW_S": DAY,
    }
    slurm.have(job(1) | at(47), job(2) | at(1))
    slurm.write(does=f"if ((until > {int(time.time())} - 600)); then {does}; fi")
    done = slurm.ask("--since", "2d")
    assert done.code == 3 and words in done.err, done.said
    assert "was not imported; what came before is kept" in " ".join(done.err.split())
    assert slurm.states() == {"1": "completed"}
    ((since, until),) = slurm.spans()
    assert until - since == DAY
    slurm.write(does="")
    assert slurm.ask().code == 0
    assert slurm.states() == {"1": "completed", "2": "completed"}


def test_what_would_be_incomplete_is_not_asked(slurm: Slurm) -> None:
    slurm.have(job(1) | at(5))
    slurm.write(fields=" ".join(name for name in RECORD if name != "AllocCPUS"))
    assert "this sacct has no field AllocCPUS" in slurm.ask("--since", "2d").err
    slurm.write(fields=" ".join(RECORD), backlog="5000")
    assert "5000 records that slurmdbd does not have yet" in slurm.ask("--since", "2d").err
    slurm.write(backlog="3")
    done = slurm.ask("--since", "2d", "--cluster", "frost")
    assert "slurmdbd does not know the cluster frost; it has emu" in done.err
    (slurm.folder / "sacct").unlink()
    for name in ("cat", "dirname"):
        (slurm.folder / name).symlink_to(f"/usr/bin/{name}")
    slurm.place.env["PATH"] = str(slurm.folder)
    done = slurm.ask("--since", "2d")
    assert "sacct cannot be started: No such file" in done.err and "--file" in done.err
    assert not slurm.spans()


def test_a_saved_output(slurm: Slurm, tmp_path: Path) -> None:
    file = tmp_path / "saved.txt"
    first = {"JobID": "1", "End": "1795946290"}
    lines = saved(first, {"JobName": "a\nb", "JobID": "2"}, {"JobID": "x"}, delimiter="<|>")
    file.write_text("".join(lines))
    done = slurm.ask("--file", str(file))
    assert done.code == 3, done.said
    assert slurm.states() == {"1": "completed", "2": "completed"}
    assert slurm.spans() == [(1795946290, 1795946364)]
    file.write_text("JobID|State\n1|COMPLETED\n")
    done = slurm.ask("--file", str(file))
    assert f"{file}:1: there is no Submit, Start, End, AllocCPUS" in done.err
    file.write_bytes(gzip.compress("\ufeffno header\n".encode()))
    done = slurm.ask("--file", str(file))
    assert done.code == 2 and f"{file}:1: 'no header' is no header of sacct" in done.err
    file.write_bytes(gzip.compress("".join(lines).encode())[:-20])
    assert slurm.ask("--file", str(file)).code == 2
    assert len(slurm.spans()) == 1
    refused = slurm.ask("--file", str(file), "--timezone", "Nowhere")
    assert "'Nowhere' is no time zone" in refused.err
    assert not slurm.asked()


def test_cpus_are_cores_of_the_machine(slurm: Slurm, tmp_path: Path) -> None:
    """The machine file tells that Slurm's CPUs are hardware threads. Where it does not, it is
    said that jobs have more of them than their nodes."""
    slurm.have(job(1) | at(5))  # 8 CPUs of 2 nodes
    file = tmp_path / "emu.yaml"
    text = "machine: emu\nscheduler: slurm\ntoolchains: {plain: {}}\n"
    for cores, threads, words, expected in (
        (2, 2, (), 4),
        (2, 1, (), 8),
        (8, 1, ("--cpus-per-core", "4"), 2),
    ):
        node = f"{{names: 'n[001-002]', cores: {cores}, threads_per_core: {threads}}}"
        file.write_text(f"{text}nodes: [{node}]\n")
        line = ("usage", "import", "sacct", "-m", str(file), "--since", "2d")
        done = slurm.place.seatrial(*line, *words)
        assert done.code == 0, done.said
        assert slurm.jobs().numbers["cores"].tolist() == [expected]
        assert ("correct its threads_per_core" in " ".join(done.said.split())) == (expected == 8)


def test_jobs_that_are_not_shown_to_all(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm.write(configuration="PrivateData            = accounts,jobs,users")
    commands = Commands(slurm.place.env, "")
    commands.require_all_jobs()  # by root, who sees all
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(BackendError, match=r"your own jobs alone \(PrivateData=jobs\)"):
        commands.require_all_jobs()
    (slurm.folder / "level").touch()
    commands.require_all_jobs()
    slurm.write(configuration="PrivateData            = accounts")
    (slurm.folder / "level").unlink()
    commands.require_all_jobs()


def test_ids_are_kept_short() -> None:
    assert text_of({5, 1, 2, 3}) == "1-3,5" and numbers_of("1-3,5") == {1, 2, 3, 5}
    assert text_of(()) == "" and numbers_of("") == set()
