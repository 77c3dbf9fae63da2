"""A run of ``bsp papers``: compute, print, and write the files that are asked for."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rich.console import Console

from bsplib.apps.papers import show
from bsplib.apps.papers.here import PARTS, here
from bsplib.apps.papers.items import VIRTUAL_PARTS, Item, quick, story, virtual
from bsplib.apps.progress import drawn
from bsplib.apps.sql.plan import STAGES
from bsplib.errors import UsageError
from bsplib.extras import need
from bsplib.output_file import PAGE, write_text


def run(
    *,
    everything: bool,
    html: Path | None,
    as_json: Path | None,
    markdown: Path | None,
    measured: Path | None,
    force: bool = False,
) -> None:
    """Compute all entries, print them, and write them.

    Args:
        everything: whether to measure this computer, too.
        html: file for a page.
        as_json: file for a JSON document.
        markdown: file for the page of the documentation.
        measured: file for the table of what was measured.
        force: replace files that exist.

    Raises:
        UsageError: a file cannot be written.
        MissingExtraError: pyarrow, which the queries need, is not installed.
    """
    need("pyarrow")
    same, own = collected(everything=everything)
    items = same + own
    Console().print(show.as_table(items))
    written = (
        *((html, show.as_html, items), (as_json, show.as_json, items)),
        *((markdown, show.as_markdown, items), (measured, show.as_csv, own)),
    )
    for path, text, told in written:
        if path is not None:
            try:
                write_text(path, text(told), PAGE if path == html else None, force=force)
            except OSError as error:
                raise UsageError(f"papers: {path} cannot be written: {error.strerror}") from None
            Console().print(f"wrote {path}", highlight=False, soft_wrap=True)


def collected(*, everything: bool = False) -> tuple[list[Item], list[Item]]:
    """Compute all entries, with a progress bar.

    Args:
        everything: whether to measure this computer, too.

    Returns:
        Entries that are the same everywhere, and those that were measured.
    """
    items, measured, done = list(quick()), list[Item](), count(1)
    parts = VIRTUAL_PARTS + len(STAGES) + everything * PARTS
    with drawn("running programs on virtual processors") as told:

        def advance() -> None:
            told(next(done) / parts)

        items += virtual(advance)
        items += story(advance)
        if everything:
            measured += here(advance)
    return items, measured
