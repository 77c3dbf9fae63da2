"""A run of ``bsp papers``: compute, print, and write the files that are asked for."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rich.console import Console

from apps.papers import show
from apps.papers.here import PARTS, here
from apps.papers.items import VIRTUAL_PARTS, Item, quick, story, virtual
from apps.progress import drawn
from apps.sql.plan import STAGES
from bsplib.errors import UsageError
from bsplib.extras import need


def run(
    *, everything: bool, html: Path | None, as_json: Path | None, markdown: Path | None
) -> None:
    """Compute all entries, print them, and write them.

    Args:
        everything: whether to measure this computer, too.
        html: file for a page.
        as_json: file for a JSON document.
        markdown: file for the page of the documentation.

    Raises:
        UsageError: a file cannot be written.
        MissingExtraError: pyarrow, which the queries need, is not installed.
    """
    need("pyarrow")
    items = collected(everything=everything)
    Console().print(show.as_table(items))
    written = ((html, show.as_html), (as_json, show.as_json), (markdown, show.as_markdown))
    for path, text in written:
        if path is not None:
            try:
                path.write_text(text(items), encoding="utf-8")
            except OSError as error:
                raise UsageError(f"papers: {path} cannot be written: {error.strerror}") from None
            Console().print(f"wrote {path}", highlight=False, soft_wrap=True)


def collected(*, everything: bool = False) -> list[Item]:
    """Compute all entries, with a progress bar.

    Args:
        everything: whether to measure this computer, too.
    """
    items, done = list(quick()), count(1)
    parts = VIRTUAL_PARTS + len(STAGES) + everything * PARTS
    with drawn("running programs on virtual processors") as told:

        def advance() -> None:
            told(next(done) / parts)

        items += virtual(advance)
        items += story(advance)
        if everything:
            items += here(advance)
    return items
