"""Attacks on whole trials, for as long as one likes: ``python -m torture`` (``make torture``)."""
