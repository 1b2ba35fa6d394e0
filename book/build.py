"""Run every notebook and build the book into book/_build/html: `python book/build.py`, or `nox -s book`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not book/: its modules are imported as parts of the package

from rich.console import Console  # noqa: E402

from book.builder.assembly import AssemblyError, assemble, chapter_jobs, jobs, write_rules  # noqa: E402
from book.builder.execution import Shelf, execute  # noqa: E402
from book.builder.outline import OutlineError, homes, load  # noqa: E402
from book.builder.rendering import RenderingFailed, render  # noqa: E402
from book.generated.symptoms import SymptomError  # noqa: E402
from book.generated.teaching import TeachingError  # noqa: E402
from bugs.lab.preparation import prepare  # noqa: E402
from bugs.zoo.keeper.catalogue import CatalogueError, load_catalogue  # noqa: E402

INTERRUPTED = 130


class NotebooksFailed(RuntimeError):
    """Some notebooks did not do what they should; `str()` says for each which cell, and what happened."""


FAILURES = (
    AssemblyError,
    CatalogueError,
    NotebooksFailed,
    OutlineError,
    RenderingFailed,
    SymptomError,
    TeachingError,
)


def build(root: Path, seed: int, console: Console) -> bool:
    """Build `root/book/_build/html`; return whether the site had to be re-created.

    Raises:
        AssemblyError, CatalogueError, NotebooksFailed, OutlineError, RenderingFailed, TeachingError: there is no
            book; the message says why.
    """
    book = root / "book"
    exhibits = list(load_catalogue(root).values())
    console.print(f"rules: {write_rules(exhibits, book / 'rules')} pages")
    chapters = load(book / "chapters")
    homes(chapters, exhibits)  # before the notebooks run
    # The longest first: one that began last would run alone.
    patient = sorted(exhibits, key=lambda exhibit: -exhibit.budget_s)
    wanted = [*jobs(patient, book / "exhibits", root, seed), *chapter_jobs(chapters, book, root, seed)]
    # In advance, so that no page shows how the lab was built on a machine that did not have it yet.
    notebooks, failures = execute(wanted, Shelf(book / "_build" / "executed"), console, prepare)
    if failures:
        headline = f"{len(failures)} of {len(wanted)} notebooks failed, so there is no book:"
        raise NotebooksFailed("\n\n".join([headline, *failures]))
    source = assemble(exhibits, chapters, notebooks, book, root)
    with console.status("rendering"):
        return render(source, book, root / "constraints.txt")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the book; return 0 if every notebook ran as meant and every page is sound, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="book/build.py", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="SEED in every notebook (default: 0)")
    parser.add_argument("--fresh", action="store_true", help="forget every notebook that was run before")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    started = time.monotonic()
    if options.fresh:
        shutil.rmtree(ROOT / "book" / "_build", ignore_errors=True)
    try:
        changed = build(ROOT, options.seed, console)
    except FAILURES as error:
        console.print(f"\n{error}", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("interrupted; the kernels end with this program")
        sys.stdout.flush()
        os._exit(INTERRUPTED)  # the threads that wait for a kernel cannot be told to stop
    state = f"built in {time.monotonic() - started:.0f} s" if changed else "unchanged"
    console.print(f"book: {state}; open {ROOT / 'book' / '_build' / 'html' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
