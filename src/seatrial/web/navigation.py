"""What the navigation shows: the area, its name, its address."""

from __future__ import annotations

AREAS = (
    ("now", "Now", "/"),
    ("trials", "Trials", "/trials"),
    ("failures", "Failures", "/failures"),
    ("runs", "Runs", "/runs"),
    ("machines", "Machines", "/machines"),
    ("networks", "Networks", "/network"),
    ("compare", "Compare", "/compare"),
    ("history", "History", "/history"),
    ("scaling", "Scaling", "/scaling"),
)
