"""Build the documentation as a site: `make docs`, or

    .venv/bin/python -m tools.docs_site --pictures

The pages are those of docs/ and the README files, unchanged. Beside them stand the pages of the
reference, made from the code, and pictures of the pages that `seatrial serve` shows. A link or an
anchor that leads nowhere ends the build.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config
from tools.docs_pictures import picture_page
from tools.docs_reference import reference_pages

ROOT = Path(__file__).parents[1]
PAGES = ["*.md", "docs/**/*.md", "suites/*/README.md", "machines/README.md"]
LINKED = ["ci/*", "LICENSE", "docs/how-to/results.ipynb"]


def stage(folder: Path, pictures: bool) -> dict[str, list[dict[str, str]]]:
    """Write all pages below an empty folder, at the places that they have in the repository, so
    that their links hold. Return what was made for the navigation, by its heading."""
    for pattern in [*PAGES, *LINKED]:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                copy = folder / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    reference = folder / "docs" / "reference"
    made = dict(reference_pages())
    if pictures:
        made["Pages of the server"] = dict(picture_page(reference / "pictures"))
    for pages in made.values():
        for place, text in pages.items():
            page = reference / place
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
    return {
        heading: [{_title(text): f"docs/reference/{place}"} for place, text in pages.items()]
        for heading, pages in made.items()
    }


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def with_made(nav: list[dict[str, Any]], made: dict[str, list[dict[str, str]]]) -> list[Any]:
    """Return the navigation with what was made below `Reference`."""
    return [
        {"Reference": [*each["Reference"], *({one: pages} for one, pages in made.items())]}
        if "Reference" in each
        else each
        for each in nav
    ]


def main() -> int:
    """Build the site; raises mkdocs' Abort, after its messages, where a link leads nowhere."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT / "build", help="folder of docs and site")
    parser.add_argument("--pictures", action="store_true", help="with pictures; needs Chromium")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    pages, site = asked.to.resolve() / "docs", asked.to.resolve() / "site"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    made = stage(pages, asked.pictures)
    config = load_config(
        str(ROOT / "mkdocs.yml"), docs_dir=str(pages), site_dir=str(site), strict=True
    )
    config.nav = with_made(config.nav or [], made)
    build(config)
    print(f"{site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
