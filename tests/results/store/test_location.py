from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.results.store.location import shown


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ana@db.site.org:5433/runs", "postgresql://ana@db.site.org:5433/runs"),
        ("postgres://db/runs", "postgresql://db/runs"),
        ("postgresql://ana:secret@db/runs", "postgresql://ana@db/runs"),
        ("postgresql://ana:se:cr@et@db/runs", "postgresql://ana@db/runs"),
        ("postgresql://ana:a/secret@db/runs", "postgresql://ana@db/runs"),
        ("postgresql://ana:a?secret@db/runs", "postgresql://db/runs"),
        ("postgresql://ana:secret", "postgresql://ana"),
        ("postgresql://[::1]:5433/runs", "postgresql://[::1]:5433/runs"),
        ("postgresql://[::1]/runs", "postgresql://[::1]/runs"),
        (
            "postgresql:///runs?host=/run/pg&password=secret&sslpassword=secret&port=5433",
            "postgresql:///runs?host=/run/pg&port=5433",
        ),
        ("mysql://ana:secret@db/runs", "mysql://ana@db/runs"),
        ("postgresql:ana:se://secret@db", "what was given"),
        ("sqlite.db", "sqlite.db"),
        ("host=db password=secret", "what was given"),
        ("ana:secret@db", "what was given"),
    ],
)
def test_what_is_shown_of_a_url_holds_no_password(url: str, expected: str) -> None:
    assert shown(url) == expected


def test_a_path_is_shown_as_it_is() -> None:
    assert shown(Path("trials/a:b@c?d")) == "trials/a:b@c?d"
