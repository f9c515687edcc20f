"""Events of trials, sent to InfluxDB, a webhook, by mail or into a file."""

from __future__ import annotations

from typing import Annotated, Any

from seatrial.hooks import Command, Delivery, Key, SinkKind, hookimpl, load, value_of
from seatrial.model.file_model import doc

CHATS = ("slack", "mattermost", "teams")


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "sink",
            "seatrial.plugins.sinks.commands:sink",
            "Send a trial's events to InfluxDB, a webhook or a file.",
            "Keep and exchange data",
        ),
    ]


@hookimpl
def seatrial_sinks() -> list[SinkKind]:
    webhook = "seatrial.plugins.sinks.post:Webhook"
    return [
        SinkKind(
            "influxdb",
            "seatrial.plugins.sinks.influxdb:InfluxDB",
            frozenset({"url"}),
            frozenset(
                {"database", "retention", "org", "bucket", "user", "token", "oth_compatible"}
            ),
        ),
        SinkKind(
            "webhook",
            webhook,
            frozenset({"url"}),
            frozenset({"token", "body", "template", "events"}),
        ),
        SinkKind(
            "file",
            "seatrial.plugins.sinks.lines_file:LinesFile",
            frozenset({"path"}),
            frozenset({"events"}),
            place="path",
        ),
        *(
            SinkKind(
                chat,
                webhook,
                frozenset({"url"}),
                frozenset({"events", "template"}),
                people=True,
                every=10.0,
            )
            for chat in CHATS
        ),
        SinkKind(
            "mail",
            "seatrial.plugins.sinks.mail:Mail",
            frozenset({"to"}),
            frozenset({"url", "sender", "user", "token", "events"}),
            place="to",
            schemes=("smtp", "smtps"),
            people=True,
            every=60.0,
        ),
    ]


@hookimpl
def seatrial_keys() -> list[Key]:
    keys = "seatrial.plugins.sinks.keys"
    about = doc("where the events of its trials are sent")
    sinks = Annotated[list[load(f"{keys}:Sink")], about]  # type: ignore[misc, valid-type]
    return [Key("machine", "sinks", sinks, [], f"{keys}:check", of_runs=False)]


@hookimpl
def seatrial_deliveries() -> list[Delivery]:
    lags = "seatrial.plugins.sinks.lifetime:sink_lags"
    return [Delivery(f"{__name__}:observed", f"{__name__}:start", lags)]


def observed(folder: Any, observer: Any, log_level: str) -> Any:
    """Return the observer of a drive: one that starts the process, where the machine has sinks."""
    if not value_of(folder.record().machine, "sinks", list):
        return observer
    return load("seatrial.plugins.sinks.process:Starting")(folder, observer, log_level)


def start(folder: Any, log_level: str) -> str:
    """Start the process that sends a trial's events, where its machine has sinks. Returns why it
    cannot be started, "" if it can."""
    if not value_of(folder.record().machine, "sinks", list):
        return ""
    reason: str = load("seatrial.plugins.sinks.process:start")(folder, log_level)
    return reason
