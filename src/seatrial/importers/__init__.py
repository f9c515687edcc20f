"""Importers of what other harnesses have, a folder each: they write suites as people write them."""
