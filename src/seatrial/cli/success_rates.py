"""The success rates of tests over time, as ``seatrial history success_rate`` prints them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from seatrial.cli.note import show_minute
from seatrial.cli.query_common import print_csv
from seatrial.cli.tables import TextTable, in_per_cent, interval_in_per_cent
from seatrial.store.export import iso, to_json
from seatrial.studies.success_rate import SUCCESS_RATE, SuccessRates
from seatrial.verify.reading import plain_line


def print_rates(found: list[SuccessRates], form: str) -> None:
    """Print the series as a table, JSON or CSV."""
    {"table": _print_table, "json": _print_json, "csv": _print_csv}[form](found)


def _print_table(found: list[SuccessRates]) -> None:
    for series in found:
        title = f"{SUCCESS_RATE} of {series.test} on {series.machine}"
        click.echo(click.style(plain_line(title), bold=True))
        rows = TextTable("since | trial~ | passed> | of> | rate> | 95 %>")
        for rate in series.rates:
            numbers = (rate.passed, rate.counted, in_per_cent(rate.rate))
            interval = interval_in_per_cent(*rate.interval)
            rows.add(show_minute(rate.time), rate.trial, *numbers, interval)
        click.echo(f"{rows}\n")
    click.echo(f"{len(found)} series; changes of rates are not judged")


def _print_json(found: list[SuccessRates]) -> None:
    records = [
        {
            "metric": SUCCESS_RATE,
            "machine": series.machine,
            "test": series.test,
            "points": [
                {
                    "time": iso(rate.time),
                    "trial": rate.trial,
                    "passed": rate.passed,
                    "counted": rate.counted,
                    "value": rate.rate,
                    "low": rate.interval[0],
                    "high": rate.interval[1],
                }
                for rate in series.rates
            ],
        }
        for series in found
    ]
    click.echo(to_json(records), nl=False)


def _print_csv(found: list[SuccessRates]) -> None:
    titles = ("machine", "test", "time", "trial", "passed", "counted", "value", "low", "high")
    rows: list[Sequence[object]] = [titles]
    for series in found:
        for rate in series.rates:
            of = (series.machine, series.test, iso(rate.time), rate.trial)
            rows.append([*of, rate.passed, rate.counted, rate.rate, *rate.interval])
    print_csv(rows)
