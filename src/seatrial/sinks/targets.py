"""Make the target of a sink, by the sink's kind. Only a target that needs httpx imports it.

target = target_of(sink, about, case_name)
planned(sink)                                # what people may see of it, before it is made
"""

from urllib.parse import urlsplit

from seatrial.account import at_home
from seatrial.machine.sinks import Sink
from seatrial.sinks.lines_file import LinesFile
from seatrial.sinks.protocol import CaseName, SinkTarget
from seatrial.sinks.secrets import SECRET_PLACES
from seatrial.sinks.trial_info import TrialInfo


def planned(sink: Sink) -> str:
    """Return what people may see of a sink's target, before it is made."""
    if sink.kind == "file":
        return str(at_home(sink.path))
    if sink.kind == "mail":
        return ", ".join(sink.to)
    if sink.url.startswith(SECRET_PLACES):
        return sink.url
    from seatrial.sinks.post import shown_url

    try:
        return shown_url(urlsplit(sink.url))
    except ValueError:  # reported when it is used
        return ""


def target_of(sink: Sink, about: TrialInfo, case_name: CaseName) -> SinkTarget:
    """Return the target of a sink; texts to people ask ``case_name``. Raises UsageError if a secret
    or certificate cannot be read."""
    match sink.kind:
        case "influxdb":
            from seatrial.sinks.influxdb import InfluxDB

            return InfluxDB(sink, about)
        case "mail":
            from seatrial.sinks.mail import Mail

            return Mail(sink, about, case_name)
        case "webhook" | "slack" | "mattermost" | "teams":
            from seatrial.sinks.webhook import Webhook

            return Webhook(sink, case_name)
        case "file":
            return LinesFile(sink, about.tag)
