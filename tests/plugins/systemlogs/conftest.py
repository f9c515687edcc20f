"""A place for a store, in each of the two databases."""

from tests.results.store.conftest import _shared, location, postgres, postgres_url

__all__ = ["_shared", "location", "postgres", "postgres_url"]
