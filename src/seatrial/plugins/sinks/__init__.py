"""Events of trials, sent to InfluxDB, a webhook, by mail or into a file."""

from __future__ import annotations

from seatrial.hooks import Command, SinkKind, hookimpl

CHATS = ("slack", "mattermost", "teams")


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "sink",
            "seatrial.plugins.sinks.command:command",
            "Send a trial's events to InfluxDB, a webhook or a file.",
            "Keep and exchange data",
        ),
    ]


@hookimpl
def seatrial_sinks() -> list[SinkKind]:
    webhook = "seatrial.plugins.sinks.webhook:Webhook"
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
