"""The tables, once for both databases, and the states in which people count runs.

    for statement in statements(): database.execute(statement)

SQLite takes the text as it is. PostgreSQL has no ``WITHOUT ROWID`` and no columns without a type,
gives ids from a sequence, and must be told to compare text as bytes: see ``postgres_server``.
"""

from collections.abc import Iterator

from seatrial.journal import codes
from seatrial.journal.trial_life import TrialState

VERSION = 18

UNFINISHED = (codes.PENDING.number, codes.IN_PROGRESS.number)
ENDED = TrialState.ENDED.value

# The states in which people count runs. A run whose case runs again, and one whose failure is
# known, have neither passed nor failed.
STATES = {"waiting": 0, "running": 1, "passed": 2, "failed": 3, "again": 4, "known": 5}
WAITING, RUNNING, PASSED, FAILED, AGAIN, KNOWN = STATES.values()


_OUTCOMES = {
    codes.PENDING.number: WAITING,
    codes.IN_PROGRESS.number: RUNNING,
    codes.RECALLED.number: AGAIN,
    codes.GIVEN.number: AGAIN,
    codes.KNOWN.number: KNOWN,
    codes.PASS.number: PASSED,
}
_UNFINISHED = frozenset(UNFINISHED)


def outcome_of(code: int, again: bool) -> int:
    """Return the state of a run with that verdict. A recalled run and a given figure count as run
    again: they neither passed nor failed."""
    if again and code not in _UNFINISHED:
        return AGAIN
    return _OUTCOMES.get(code, FAILED)


TABLES = f"""
CREATE TABLE trials (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, machine TEXT NOT NULL,
    tag TEXT NOT NULL, created BIGINT NOT NULL, version TEXT NOT NULL,
    owner TEXT NOT NULL, host TEXT NOT NULL,
    cases BIGINT NOT NULL, planned BIGINT NOT NULL,         -- runs that were asked for
    state TEXT NOT NULL, state_time BIGINT NOT NULL,        -- by the journal's word
    started BIGINT, last BIGINT,                            -- first start, last event
    damaged BIGINT NOT NULL,                                -- lines that are no events
    ingested BIGINT NOT NULL,                               -- bytes of the journal
    events BIGINT NOT NULL, runs BIGINT NOT NULL,           -- of it, in these tables
    waiting BIGINT NOT NULL, running BIGINT NOT NULL,       -- of the runs, in each state
    passed BIGINT NOT NULL, failed BIGINT NOT NULL, again BIGINT NOT NULL, known BIGINT NOT NULL,
    inode BIGINT NOT NULL, size BIGINT NOT NULL, modified BIGINT NOT NULL,
    fingerprint BIGINT NOT NULL,                            -- of the bytes that are ingested
    plan TEXT NOT NULL, component TEXT NOT NULL, phase TEXT NOT NULL,
    rehearsed BOOLEAN NOT NULL,                             -- nothing of it was measured
    UNIQUE (path, machine)
);
CREATE TABLE tests (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, app TEXT NOT NULL,
    tags TEXT NOT NULL,                                     -- each between line ends
    UNIQUE (name, app, tags)
);
CREATE TABLE cases (
    id INTEGER PRIMARY KEY, trial BIGINT NOT NULL, case_id TEXT NOT NULL,
    test BIGINT NOT NULL, name TEXT NOT NULL, toolchain TEXT NOT NULL,
    parameters TEXT NOT NULL,                               -- JSON
    defaults TEXT NOT NULL,                                 -- JSON; of its other parameters
    nodes BIGINT, tasks BIGINT, tasks_per_node BIGINT, threads BIGINT,
    walltime DOUBLE PRECISION,
    node TEXT NOT NULL, build TEXT NOT NULL, repeat BIGINT NOT NULL,
    UNIQUE (trial, case_id)
);
CREATE INDEX cases_by_toolchain ON cases (toolchain, id);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, trial BIGINT NOT NULL, run_id TEXT NOT NULL,
    case_row BIGINT NOT NULL, test BIGINT NOT NULL,
    seq BIGINT NOT NULL,                                    -- order of appearance in the trial
    state SMALLINT NOT NULL,                                -- outcome_of(code, again)
    last BIGINT NOT NULL, elapsed DOUBLE PRECISION,         -- last event; seconds of its script
    lifecycle SMALLINT NOT NULL,                            -- journal.run_life.RunState
    code BIGINT NOT NULL, why TEXT NOT NULL,
    again BOOLEAN NOT NULL,                                 -- its case runs again
    recalled BOOLEAN NOT NULL,                              -- before its job started
    created BIGINT NOT NULL, submitted BIGINT, queued BIGINT,
    job_started BIGINT, script_started BIGINT, script_ended BIGINT, job_ended BIGINT,
    judged BIGINT,
    exit_code BIGINT, job_id TEXT NOT NULL, nodes TEXT NOT NULL, path TEXT NOT NULL,
    target TEXT NOT NULL, stage TEXT NOT NULL,              -- where placed, alone or full
    environment TEXT NOT NULL,                              -- its hash
    node_facts TEXT NOT NULL,                               -- digest of the facts of its nodes
    first_code BIGINT,                                      -- if it was judged again
    cause TEXT NOT NULL, cause_code BIGINT NOT NULL,        -- what it failed of, by its output
    cause_line TEXT NOT NULL, advice TEXT NOT NULL,
    UNIQUE (run_id, trial)
);
CREATE INDEX runs_by_creation ON runs (created, id, trial, test, case_row, state, code);
CREATE INDEX runs_by_trial ON runs (trial, created, id, test, case_row, state, code);
CREATE INDEX runs_by_state ON runs (state, code, created, trial, test, case_row);
CREATE INDEX runs_by_test ON runs (test, trial, script_started, elapsed, code, case_row, created,
    run_id, stage);
CREATE INDEX runs_by_case ON runs (case_row, created, id);
CREATE INDEX runs_failed ON runs (state, judged, id, trial, test, cause) WHERE state = {FAILED};
CREATE INDEX runs_by_cause ON runs (cause) WHERE cause <> '';
CREATE TABLE nodes (                                        -- in the order of the description
    machine TEXT NOT NULL, place BIGINT NOT NULL, name TEXT NOT NULL,
    chain BIGINT NOT NULL,                                  -- see node_places
    PRIMARY KEY (machine, place), UNIQUE (machine, name)
) WITHOUT ROWID;
CREATE TABLE run_nodes (                                    -- spans of places, both ends included
    trial BIGINT NOT NULL, run BIGINT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
    PRIMARY KEY (trial, run, first)
) WITHOUT ROWID;
CREATE TABLE events (                                       -- of runs
    run BIGINT NOT NULL, time BIGINT NOT NULL,
    seq BIGINT NOT NULL,                                    -- its place in the journal
    number SMALLINT NOT NULL, value BLOB, detail TEXT NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (run, time, seq)
) WITHOUT ROWID;
CREATE TABLE trial_events (                                 -- of no run
    trial BIGINT NOT NULL, time BIGINT NOT NULL, seq BIGINT NOT NULL,
    number SMALLINT NOT NULL, value BLOB, detail TEXT NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (trial, time, seq)
) WITHOUT ROWID;
CREATE TABLE metric_names (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, better TEXT NOT NULL,
    UNIQUE (name, unit, better)
);
CREATE TABLE metrics (
    run BIGINT NOT NULL, metric BIGINT NOT NULL, value DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run, metric)
) WITHOUT ROWID;
CREATE TABLE given_figures (                                -- by others: nothing was measured
    run BIGINT NOT NULL, metric BIGINT NOT NULL, n BIGINT NOT NULL,
    sd DOUBLE PRECISION, least DOUBLE PRECISION, greatest DOUBLE PRECISION,
    PRIMARY KEY (run, metric)
) WITHOUT ROWID;
CREATE TABLE builds (
    trial BIGINT NOT NULL, key TEXT NOT NULL, path TEXT NOT NULL,
    started BIGINT, ended BIGINT, value BIGINT, text TEXT NOT NULL,
    PRIMARY KEY (trial, key)
) WITHOUT ROWID;
CREATE TABLE gaps (
    trial BIGINT NOT NULL, line BIGINT NOT NULL, lines BIGINT NOT NULL,
    first BIGINT NOT NULL, last BIGINT NOT NULL,            -- bytes: from, to before
    before BIGINT, after BIGINT,                            -- times of the events around it
    PRIMARY KEY (trial, first)
) WITHOUT ROWID;
"""


def statements() -> Iterator[str]:
    """Yield the statements that make the tables, without their comments."""
    lines = (line.partition("--")[0].rstrip() for line in TABLES.splitlines())
    for statement in "\n".join(lines).split(";"):
        if statement.strip():
            yield statement.strip()
