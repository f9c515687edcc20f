"""Parsers of well-known outputs, one file each; its name is what ``metrics: {from: NAME}`` says.

A parser has ``parse(text) -> list[MetricValue]``. It raises ValueError with the reason for an
output that is truncated, failed or of another program, and never returns a part of the figures.
``FILE`` is the file that is read, if not stdout; ``LIMIT`` the maximum bytes; ``FIGURES`` the names
of the figures, if all are known in advance. The first line of the docstring is its description.

A row is recognised by its first words. ``number`` then reads its numbers, so that a comma or a star
in one is an error. Patterns must take time linear in the text: no output may hang the trial.
``judge/formats.py`` has what several of them need.
"""
