"""A run of ``bsp papers``: compute, print, and write the files that are asked for."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rich.console import Console

from apps.papers import show
from apps.papers.items import full, quick, transforms
from apps.progress import drawn
from bsplib.errors import UsageError
from bsplib.extras import need


def run(
    *, everything: bool, html: Path | None, as_json: Path | None, markdown: Path | None
) -> None:
    """Compute all entries, print them, and write them.

    Args:
        everything: whether to run the SQL story, too.
        html: file for a page.
        as_json: file for a JSON document.
        markdown: file for the page of the documentation.

    Raises:
        UsageError: a file cannot be written.
        MissingExtraError: pyarrow, which the queries need, is not installed.
    """
    need("pyarrow")
    items = list(quick())
    if everything:
        done = count(1)
        with drawn("running four stages") as told:
            items += full(lambda: told(next(done) / 4))
        with drawn("predicting transforms"):
            items += transforms()
    Console().print(show.as_table(items))
    written = ((html, show.as_html), (as_json, show.as_json), (markdown, show.as_markdown))
    for path, text in written:
        if path is not None:
            try:
                path.write_text(text(items), encoding="utf-8")
            except OSError as error:
                raise UsageError(f"papers: {path} cannot be written: {error.strerror}") from None
            Console().print(f"wrote {path}", highlight=False, soft_wrap=True)
