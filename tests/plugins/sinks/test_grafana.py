"""The dashboards: their shape, and every query of theirs asked of the database that it is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import RunJudged
from seatrial.model.codes import CODES, NO_VERDICT, PASS, RECALLED
from seatrial.plugins.sinks.keys import Sink
from seatrial.results.store.ingest import sync
from seatrial.results.store.opening import open_store
from tests.plugins.sinks.influx import Influx
from tests.plugins.sinks.panels import DASHBOARDS, GRAFANA, Panel, Window, expanded, load, panels
from tests.plugins.sinks.sending import deliver
from tests.programs import Workplace
from tests.results.store.conftest import NEEDS_POSTGRES
from tests.results.store.postgres import PostgresServer
from tests.results.store.trials import TrialMaker, a_trial

EVER = Window(0, 1 << 61)
KINDS = ("elapsed", "failures", "jobs", "summary")
SCHEMA_VERSION = 39  # of Grafana 10.3 and 11; newer ones migrate it
SOURCES = {
    "postgresql": {"type": "grafana-postgresql-datasource", "uid": "seatrial-postgresql"},
    "influxdb": {"type": "influxdb", "uid": "seatrial-influxdb"},
    "flux": {"type": "influxdb", "uid": "seatrial-influxdb-flux"},
}
# Of Flux: tests/plugins/sinks/flux.py, as Debian has no InfluxDB 2.
ASKED = ("postgresql", "influxdb")

# The columns of every panel, in their order.
COLUMNS = {
    "postgresql-failures: Failures by test": "time metric failures",
    "postgresql-failures: Failures, newest first": "time trial machine app test run verdict why"
    " nodes job exit_code directory",
    "postgresql-jobs: Runs in this window": "runs passed failed running waiting run_again building",
    "postgresql-jobs: All jobs, newest first": "time trial machine app test case run state verdict"
    " script_started elapsed nodes job directory",
    "postgresql-summary: Tests": "machine app test runs passed failed going run_again pass_rate"
    " least median largest",
    "postgresql-summary: Figures": "machine test case metric unit better n least median largest",
    "postgresql-elapsed: Elapsed time against start": "time metric elapsed",
    "postgresql-elapsed: Slowest against the median of their case": "time trial test run verdict"
    " elapsed median times_median nodes",
    "influxdb-failures: Failures by test": "time count",
    "influxdb-failures: Failures, newest first": "time trial machine app test run verdict why"
    " nodes job directory",
    "influxdb-jobs: Runs in this window": "time runs passed failed",
    "influxdb-jobs: Under way": "time building running",
    "influxdb-jobs: All jobs, newest first": "time trial machine app test run verdict elapsed"
    " waited nodes job judged why directory",
    "influxdb-summary: Tests": "time runs passed failed pass_rate least median largest",
    "influxdb-summary: Figures, newest first": "time trial machine app test run metric value unit",
    "influxdb-elapsed: Elapsed time against start": "time elapsed",
    "influxdb-elapsed: Longest": "time elapsed trial test run verdict nodes",
    "flux-failures: Failures by test": "_time test value",
    "flux-failures: Failures, newest first": "Time trial machine app test run verdict why nodes"
    " job directory",
    "flux-jobs: Runs in this window": "runs passed failed",
    "flux-jobs: Under way": "building running",
    "flux-jobs: All jobs, newest first": "Time trial machine app test run verdict elapsed waited"
    " nodes job judged why directory",
    "flux-summary: Tests": "machine app test runs passed failed pass_rate least median largest",
    "flux-summary: Figures, newest first": "Time trial machine app test run metric value unit",
    "flux-elapsed: Elapsed time against start": "_time elapsed test",
    "flux-elapsed: Longest": "Time trial test run verdict elapsed nodes",
}


# ---- shape --------------------------------------------------------------------------------


def test_each_question_has_a_dashboard_for_each_database() -> None:
    assert [file.stem for file in DASHBOARDS] == sorted(
        f"{source}-{kind}" for source in SOURCES for kind in KINDS
    )
    names = [panel.name for source in SOURCES for panel in panels(source)]
    assert sorted(names) == sorted(COLUMNS)


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: str(file.stem))
def test_dashboards_have_the_shape_that_grafana_expects(file: Path) -> None:
    dashboard = load(file)
    assert dashboard["uid"] == f"seatrial-{file.stem}"
    assert len(dashboard["uid"]) <= 40  # Grafana's bound
    assert dashboard["schemaVersion"] == SCHEMA_VERSION
    assert "id" not in dashboard  # Grafana gives it
    assert dashboard["time"].keys() == {"from", "to"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    source = SOURCES[file.stem.partition("-")[0]]
    for panel in dashboard["panels"]:
        assert panel["type"] in ("table", "timeseries", "stat")
        assert panel["datasource"] == source
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"].keys() == {"defaults", "overrides"}
        where = panel["gridPos"]
        assert where.keys() == {"x", "y", "w", "h"}
        assert where["x"] + where["w"] <= 24
        for target in panel["targets"]:
            assert target["datasource"] == source
            assert target["refId"]
            if file.stem.startswith("flux"):
                assert target.keys() == {"refId", "datasource", "query"}
                continue
            assert target["rawQuery"] is True
            form = target["format" if "rawSql" in target else "resultFormat"]
            assert form == ("time_series" if panel["type"] == "timeseries" else "table")
    for one in panels_below(dashboard["panels"]):
        assert not one, "two panels lie on each other"
    for variable in dashboard["templating"]["list"]:
        assert variable["type"] in ("query", "textbox", "custom")
        if variable["type"] == "query":
            assert variable["datasource"] == source


def panels_below(found: Sequence[Mapping[str, Any]]) -> Iterator[bool]:
    """Whether two panels lie on each other, for each pair."""
    places = [panel["gridPos"] for panel in found]
    for i, one in enumerate(places):
        for other in places[i + 1 :]:
            beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
            yield not (beside or below)


def test_columns_that_are_shown_in_a_way_of_their_own_are_there() -> None:
    for source in SOURCES:
        for panel in panels(source):
            known = COLUMNS[panel.name].split()
            named = {word.replace("_", " ") for word in known} | {"Time"}
            for override in panel.json["fieldConfig"]["overrides"]:
                assert override["matcher"]["options"] in named, panel.name


def test_verdicts_are_shown_by_their_names() -> None:
    """Every code of the registry, in every column that holds one."""
    written = [code for code in CODES.values() if code is not NO_VERDICT]
    names = {str(code.number): code.name for code in written}
    found = 0
    for source in SOURCES:
        for panel in panels(source):
            for override in panel.json["fieldConfig"]["overrides"]:
                if override["matcher"]["options"] != "verdict":
                    continue
                found += 1
                (mapping,) = override["properties"][0]["value"]
                if source == "postgresql":
                    shown = {code: each["text"] for code, each in mapping["options"].items()}
                    assert shown == names
                else:
                    assert set(mapping["options"]) == set(names.values())
    assert found == 9


def test_a_run_leads_to_its_page() -> None:
    from seatrial.cli.commands.show import PORT
    from seatrial.show.web.routes import pages

    paths = {page.path for page in pages()}
    for file in DASHBOARDS:
        dashboard = load(file)
        (address,) = [one for one in dashboard["templating"]["list"] if one["name"] == "pages"]
        assert address["query"] == f"http://127.0.0.1:{PORT}"
        links = [
            link["url"]
            for panel in dashboard["panels"]
            for override in panel["fieldConfig"]["overrides"]
            for each in override["properties"]
            if each["id"] == "links"
            for link in each["value"]
        ]
        for url in links:
            path = url.removeprefix("${pages}").replace("${__data.fields.trial}", "{trial}")
            assert path.replace("${__data.fields.run}", "{run_id}") in paths
        assert links or file.stem == "postgresql-summary"


def test_what_is_provisioned() -> None:
    sources = yaml.safe_load((GRAFANA / "provisioning/datasources/seatrial.yaml").read_text())
    assert sources["apiVersion"] == 1
    assert [{"type": one["type"], "uid": one["uid"]} for one in sources["datasources"]] == list(
        SOURCES.values()
    )
    for one in sources["datasources"]:
        (secret,) = one["secureJsonData"].values()
        assert secret.startswith("$")
    boards = yaml.safe_load((GRAFANA / "provisioning/dashboards/seatrial.yaml").read_text())
    (provider,) = boards["providers"]
    assert provider["type"] == "file"
    assert provider["options"]["path"].startswith("/")


# ---- what is asked ------------------------------------------------------------------------


class Site(NamedTuple):
    """A trial that ran, one that was rehearsed, and the databases that know both."""

    place: Workplace
    influx: Influx
    postgres: str

    def ask(self, panel: Panel, **changes: Any) -> list[dict[str, Any]]:
        """The rows of a panel, tags of InfluxDB's groups with them."""
        window = changes.pop("window", EVER)
        if panel.dashboard.startswith("postgresql"):
            given = {"what": "measured", "trial": ["t", "other"], "pattern": ".*"}
            return self._sql(expanded(panel.query, window, {**given, **changes}))
        given = {"what": "^$", "trial": ".*", "pattern": ".*"}
        return self._influxql(expanded(panel.query, window, {**given, **changes}))

    def _sql(self, query: str) -> list[dict[str, Any]]:
        import psycopg
        from psycopg.rows import dict_row

        with psycopg.connect(self.postgres, row_factory=dict_row) as connection:
            return connection.execute(query.encode()).fetchall()

    def _influxql(self, query: str) -> list[dict[str, Any]]:
        return [
            {**dict(zip(one["columns"], row, strict=True)), "tags": one.get("tags", {})}
            for one in self.influx.query(query, "trials")
            for row in one["values"]
        ]

    def runs(self, *, failed: bool = False) -> dict[str, str]:
        """The verdicts of the runs, by the journal."""
        verdicts = {one.run_id: one.verdict for one in self.place.events("t", RunJudged)}
        verdicts |= dict.fromkeys(RECALLED_RUNS, RECALLED.name)
        fine = {PASS.name, RECALLED.name}
        return {run: name for run, name in verdicts.items() if not failed or name not in fine}


RECALLED_RUNS = ("recalled1", "recalled2")


def add_recalled_runs(folder: TrialFolder) -> None:
    """Two runs of the test bad that Seatrial recalled, one of them as version 0.1 wrote it."""
    maker = TrialMaker.of(folder)
    (case,) = [case for case in maker.cases if case.test == "bad"]
    for run_id in RECALLED_RUNS:
        maker.recalled_run(case, run_id, as_0_1=run_id == RECALLED_RUNS[1])
    maker.write()


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, _influx: Influx, postgres: PostgresServer
) -> Site:
    place = Workplace(tmp_path_factory.mktemp("site"))
    place.local(cores=2)
    triad = {"triad": {"find": r"Triad (\S+)", "unit": "MB/s", "better": "higher"}}
    place.test("io/quick+", "echo Triad 5.5", metrics=triad, repeat=3)
    place.test("bad", "exit 3", repeat=2)
    place.test("wrong", "echo no", verify=[{"contains": "yes"}])
    assert place.run("--name", "t").code == 1
    add_recalled_runs(place.trial("t"))
    rehearsed = a_trial(place.trials, "made-up", rehearsed=True).folder
    _influx.query("DROP DATABASE trials")
    _influx.query("CREATE DATABASE trials")
    sink = Sink(name="site", kind="influxdb", url=_influx.url, database="trials")
    assert deliver(place.trial("t"), sink)
    assert deliver(rehearsed, sink)
    url = postgres.database()
    with open_store(url) as store:
        sync(store, place.trials)
    return Site(place, _influx, postgres.viewer(url))


def ids(panel: Panel) -> str:
    return panel.name


ALL = [panel for source in ASKED for panel in panels(source)]


@pytest.mark.needs("influxd")
@NEEDS_POSTGRES
class TestAsked:
    """Every query, of a real database of each kind."""

    @pytest.mark.parametrize("panel", ALL, ids=ids)
    def test_every_panel_has_its_columns_and_rows(self, site: Site, panel: Panel) -> None:
        rows = site.ask(panel)
        assert rows
        wanted = [word.replace("_", " ") for word in COLUMNS[panel.name].split()]
        assert [name for name in rows[0] if name != "tags"] == wanted

    @pytest.mark.parametrize("panel", ALL, ids=ids)
    def test_nothing_is_shown_of_another_time(self, site: Site, panel: Panel) -> None:
        rows = site.ask(panel, window=Window(0, 10**15))
        assert [row for row in rows if any(_counts(row))] == []

    @pytest.mark.parametrize("panel", ALL, ids=ids)
    def test_rehearsed_and_measured_are_never_mixed(self, site: Site, panel: Panel) -> None:
        rehearsed = {"influxdb": "true", "postgresql": "rehearsed"}
        what = rehearsed[panel.dashboard.partition("-")[0]]
        made_up = str(site.ask(panel, what=what, trial=["made-up"]))
        counted = panel.json["type"] == "stat"
        assert "stream" in made_up or counted
        assert "quick" not in made_up
        assert "stream" not in str(site.ask(panel, trial=["t", "made-up"]))

    @pytest.mark.parametrize("panel", ALL, ids=ids)
    def test_a_pattern_chooses_tests(self, site: Site, panel: Panel) -> None:
        for pattern, kept in [("^ba[d]$", "bad"), ("^app of none|wrong", "wrong")]:
            found = str(site.ask(panel, pattern=pattern))
            others = {"quick", "bad", "wrong"} - {kept}
            assert not [other for other in others if f"'{other}'" in found]
        nothing = site.ask(panel, pattern="nothing is called so'")
        assert not any(any(_counts(row)) for row in nothing)

    @pytest.mark.parametrize("source", ASKED)
    def test_the_stream_of_failures(self, site: Site, source: str) -> None:
        panel = panel_of(f"{source}-failures: Failures, newest first")
        rows = site.ask(panel)
        names = {str(code.number): code.name for code in CODES.values()}
        shown = {row["run"]: names.get(str(row["verdict"]), row["verdict"]) for row in rows}
        assert shown == site.runs(failed=True)
        assert [row["time"] for row in rows] == sorted((r["time"] for r in rows), reverse=True)
        bad = next(row for row in rows if row["test"] == "bad")
        assert "exit code 3" in bad["why"]
        assert bad["directory"] == str(site.place.trial().run("bad", bad["run"]))

    @pytest.mark.parametrize("source", ASKED)
    def test_all_jobs_agree_with_their_counts(self, site: Site, source: str) -> None:
        jobs = site.ask(panel_of(f"{source}-jobs: All jobs, newest first"))
        (counts,) = site.ask(panel_of(f"{source}-jobs: Runs in this window"))
        assert {row["run"] for row in jobs} == set(site.runs())
        assert (counts["runs"], counts["passed"], counts["failed"]) == (8, 3, 3)
        assert len(jobs) == 8
        started = [row for row in jobs if row["run"] not in RECALLED_RUNS]
        assert all(row["elapsed"] >= 0 for row in started)

    @pytest.mark.parametrize("source", ASKED)
    def test_the_summary_of_tests(self, site: Site, source: str) -> None:
        rows = site.ask(panel_of(f"{source}-summary: Tests"))
        found = {
            row.get("test") or row["tags"]["test"]: (row["runs"], row["passed"], row["pass rate"])
            for row in rows
        }
        bad = 4 if source == "postgresql" else 2  # recalled ones have no column of their own here
        assert found == {"io/quick+": (3, 3, 1), "bad": (bad, 0, 0), "wrong": (1, 0, 0)}

    def test_figures(self, site: Site) -> None:
        (row,) = site.ask(panel_of("postgresql-summary: Figures"))
        assert (row["metric"], row["unit"], row["n"], row["median"]) == ("triad", "MB/s", 3, 5.5)
        rows = site.ask(panel_of("influxdb-summary: Figures, newest first"))
        assert [(row["metric"], row["value"]) for row in rows] == [("triad", 5.5)] * 3

    @pytest.mark.parametrize("source", ASKED)
    def test_a_point_for_each_run(self, site: Site, source: str) -> None:
        rows = site.ask(panel_of(f"{source}-elapsed: Elapsed time against start"))
        tests = sorted(row.get("metric") or row["tags"]["test"] for row in rows)
        assert tests == ["bad", "bad", "io/quick+", "io/quick+", "io/quick+", "wrong"]
        assert all(row["elapsed"] >= 0 for row in rows)

    def test_the_trials_that_can_be_chosen(self, site: Site) -> None:
        for source in ASKED:
            for file in DASHBOARDS:
                if not file.stem.startswith(source):
                    continue
                (variable,) = [
                    one for one in load(file)["templating"]["list"] if one["name"] == "trial"
                ]
                asked = variable["query"]
                if source == "postgresql":
                    rows = site._sql(expanded(asked, EVER, {"what": "measured"}))
                    assert [row["tag"] for row in rows] == ["t"]
                else:
                    rows = site._influxql(expanded(asked["query"], EVER, {"what": "^$"}))
                    assert [row["value"] for row in rows] == ["t"]


def panel_of(name: str) -> Panel:
    (found,) = [panel for panel in ALL if panel.name == name]
    return found


def _counts(row: Mapping[str, Any]) -> Iterator[bool]:
    """Whether each column of a row holds anything."""
    yield from (bool(value) for key, value in row.items() if key not in ("time", "tags"))
