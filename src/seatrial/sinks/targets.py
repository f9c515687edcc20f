"""The target of a sink, by its kind.

target = target_of(sink, about)
planned(sink)                                # what people are shown of it before there is one
"""

from __future__ import annotations

from seatrial.machine.sinks import Sink, path_of
from seatrial.sinks.protocol import SinkTarget
from seatrial.sinks.trial_info import TrialInfo


def planned(sink: Sink) -> str:
    """What people are shown of a sink's target before there is one."""
    if sink.kind == "file":
        return str(path_of(sink.path))
    if sink.url.startswith(("env:", "file:")):
        return sink.url
    from urllib.parse import urlsplit

    from seatrial.sinks.post import shown_url

    try:
        return shown_url(urlsplit(sink.url))
    except ValueError:  # told when it is used
        return ""


def target_of(sink: Sink, about: TrialInfo) -> SinkTarget:
    """The target that a machine's file describes. Raises UsageError where its secrets or its
    certificates are not to be had."""
    if sink.kind == "influxdb":
        from seatrial.sinks.influxdb import InfluxDB

        return InfluxDB(sink, about)
    if sink.kind == "webhook":
        from seatrial.sinks.webhook import Webhook

        return Webhook(sink)
    from seatrial.sinks.lines_file import LinesFile

    return LinesFile(sink, about.tag)
