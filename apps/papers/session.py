"""A run of ``bsp papers``: compute, print, and write the files that are asked for."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rich.console import Console

from bsplib.apps.papers import show
from bsplib.apps.papers.entries import VIRTUAL_PARTS, Item, quick, story, virtual
from bsplib.apps.progress import drawn
from bsplib.apps.sql.plan import STAGES
from bsplib.errors import UsageError
from bsplib.extras import need
from bsplib.output_file import PAGE, write_text


def run(
    *,
    html: Path | None,
    as_json: Path | None,
    markdown: Path | None,
    seeds: Path | None = None,
    force: bool = False,
) -> None:
    """Compute all entries, print them, and write them; or run the stages of the SQL story anew.

    Args:
        html: file for a page.
        as_json: file for a JSON document.
        markdown: file for the page of the documentation.
        seeds: file for what the stages of the SQL story do with each seed; then nothing else is
            computed.
        force: replace files that exist.

    Raises:
        UsageError: a file cannot be written.
        MissingExtraError: pyarrow, which the queries of the story need, is not installed.
    """
    if seeds is not None:
        need("pyarrow")
        _write(seeds, _told_by_seeds(), force=force)
        return
    items = collected()
    Console().print(show.as_table(items))
    written = ((html, show.as_html), (as_json, show.as_json), (markdown, show.as_markdown))
    for path, text in written:
        if path is not None:
            _write(path, text(items), is_page=path == html, force=force)


def _write(path: Path, text: str, *, is_page: bool = False, force: bool) -> None:
    try:
        write_text(path, text, PAGE if is_page else None, force=force)
    except OSError as error:
        raise UsageError(f"papers: {path} cannot be written: {error.strerror}") from None
    Console().print(f"wrote {path}", highlight=False, soft_wrap=True)


def _told_by_seeds() -> str:
    """Run all stages with each seed, with a progress bar, and return the file."""
    from bsplib.apps.papers import seeds  # noqa: PLC0415  # needs an extra

    done, parts = count(1), seeds.SEEDS * len(STAGES)
    with drawn("running the stages of the SQL story") as told:
        rows = seeds.measure(range(seeds.SEEDS), lambda: told(next(done) / parts))
    return seeds.as_text(rows)


def collected() -> list[Item]:
    """Compute all entries, with a progress bar."""
    items, done = list(quick()), count(1)
    with drawn("running programs on virtual processors") as told:
        items += virtual(lambda: told(next(done) / VIRTUAL_PARTS))
        items += story()
    return items
