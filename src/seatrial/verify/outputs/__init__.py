"""Parsers of well-known outputs, one file each; its name is what ``metrics: {from: NAME}`` says.

A parser has ``parse(text) -> list[Figure]``, which raises ValueError with the reason for an output
that is truncated, failed or of something else: never a part of the figures in silence. Where the
output is not stdout, ``FILE`` names it; ``LIMIT`` is the most bytes that are read of it;
``FIGURES`` may name the figures that it gives, so that what asks for another is told before
anything runs. Figures of one name are told apart by labels.

What a row is, is seen by its first words; its numbers are then read by ``number``, so that a comma
or a star in one is told and the row not passed over. Patterns must take a time that is linear in
the text: no job's output may hang the trial. The first line of a module's text is shown by
``seatrial parse --list``. Modules whose name starts with ``_`` are no formats.
"""
