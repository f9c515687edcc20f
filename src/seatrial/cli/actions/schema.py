"""``seatrial schema``: print the JSON Schema of the files that people write."""

import json

import click
from msgspec import Struct

from seatrial.documents import json_schema
from seatrial.machine.model import Machine
from seatrial.plan.model import Plan
from seatrial.studies.score_file import ScoreFile
from seatrial.suite.model import TestFile
from seatrial.suite.tune_file import TuneFile
from seatrial.verify.references import ReferencesFile

# the Struct by which the loader decodes each kind of file
SHAPES: dict[str, type[Struct]] = {
    "test": TestFile,
    "machine": Machine,
    "references": ReferencesFile,
    "plan": Plan,
    "score": ScoreFile,
    "tune": TuneFile,
}


def command(file: str) -> int:
    schema = json_schema(SHAPES[file], f"Seatrial: {file}")
    click.echo(json.dumps(schema, indent=2))
    return 0
