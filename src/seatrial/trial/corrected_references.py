"""The references that a trial is judged by, by its journal.

    references_by_now(folder, record)     # those of its record, or those that a person corrected

A trial keeps the references that it was made with, until a person judges it again by others.
"""

import msgspec

from seatrial.journal.events import ReferencesCorrected
from seatrial.journal.journal import read
from seatrial.trial.folder import TrialFolder
from seatrial.trial.record import Record, references_of
from seatrial.verify.references import Reference, References


def references_by_now(folder: TrialFolder, record: Record) -> References:
    """Return the references of a trial, after reading its whole journal. Raises InvalidFiles and
    JournalError."""
    found = None
    for event in read(folder.journal):
        if isinstance(event, ReferencesCorrected):
            found = corrected(event) or found
    return found or references_of(record)


def corrected(event: ReferencesCorrected) -> References | None:
    """Return the references that a person judged a trial again by; None if a later version wrote
    them in another form."""
    try:
        return References.of(msgspec.convert(event.entries, list[Reference]))
    except msgspec.ValidationError:
        return None
