"""Parsers of well-known outputs, one file each; its name is what ``metrics: {from: NAME}`` says.

A parser has ``parse(text) -> list[Figure]``, which raises ValueError with the reason for an output
that is truncated, failed or of something else: never a part of the figures in silence. Where the
output is not stdout, ``FILE`` names it. Its patterns must
take a time that is linear in the text: no job's output may hang the trial. Modules whose name
starts with ``_`` are no formats.
"""
