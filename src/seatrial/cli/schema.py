"""``seatrial schema``: print the JSON Schema of the files that people write."""

import importlib
import json

import click
from msgspec import Struct

from seatrial.model.documents import json_schema

# the Struct by which the loader decodes each kind of file; only that of the file is imported
SHAPES = {
    "test": "seatrial.model.test.TestFile",
    "machine": "seatrial.model.machine.Machine",
    "references": "seatrial.judge.references.ReferencesFile",
    "plan": "seatrial.model.plan.Plan",
    "score": "seatrial.results.scores.ScoreFile",
    "tune": "seatrial.model.tune_file.TuneFile",
}


FILES = ("test", "machine", "references", "plan", "score", "tune")


@click.command("schema")
@click.argument("file", type=click.Choice(FILES), default="test")
def command(file: str) -> int:
    """Print the JSON Schema of test.yaml (or of a machine, of references, of a plan, of a score,
    of a tuning).

    Editors use it to complete and check keys; for the YAML language server write
    `# yaml-language-server: $schema=test.schema.json` on the first line of a test.
    """
    schema = json_schema(shape_of(file), f"Seatrial: {file}")
    click.echo(json.dumps(schema, indent=2))
    return 0


def shape_of(file: str) -> type[Struct]:
    """Return the Struct of a kind of file."""
    module, _, name = SHAPES[file].rpartition(".")
    shape: type[Struct] = getattr(importlib.import_module(module), name)
    return shape
