"""Which certificates of servers a sink trusts (``ca``, ``verify``)."""

import ssl

from seatrial.account import at_home
from seatrial.errors import UsageError
from seatrial.machine.sinks import Sink


def trusted(sink: Sink) -> ssl.SSLContext:
    """Return the settings of TLS for a sink. Raises UsageError if ``ca`` cannot be read."""
    try:
        context = ssl.create_default_context(cafile=str(at_home(sink.ca)) if sink.ca else None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{sink.ca}: cannot be read as certificates: {error}") from error
    if not sink.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
