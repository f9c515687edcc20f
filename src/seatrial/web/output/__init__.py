"""The files of a run: opened without following links, read within bounds."""
