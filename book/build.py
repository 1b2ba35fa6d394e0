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
sys.path[0] = str(ROOT)  # not book/: its modules are imported as parts of the package

from rich.console import Console  # noqa: E402

from book.assembly import AssemblyError, assemble, jobs, write_rules  # noqa: E402
from book.execution import Shelf, execute  # noqa: E402
from book.rendering import RenderingFailed, render  # noqa: E402
from bugs.keeper.catalogue import CatalogueError, load_catalogue  # noqa: E402

BOOK = ROOT / "book"
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the book; return 0 if every notebook ran as meant and every page is sound, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="book/build.py", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="SEED in every notebook (default: 0)")
    parser.add_argument("--fresh", action="store_true", help="forget every notebook that was run before")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    started = time.monotonic()
    if options.fresh:
        shutil.rmtree(BOOK / "_build", ignore_errors=True)
    try:
        exhibits = list(load_catalogue(ROOT).values())
        pages = write_rules(exhibits, BOOK / "rules")
        console.print(f"rules: {pages} pages")
        wanted = jobs(exhibits, BOOK / "exhibits", ROOT, options.seed)
        notebooks, failures = execute(wanted, Shelf(BOOK / "_build" / "executed"), console)
        if failures:
            return _complain(
                console, f"{len(failures)} of {len(wanted)} notebooks failed, so there is no book:", *failures
            )
        source = assemble(exhibits, notebooks, BOOK, ROOT)
        with console.status("rendering"):
            changed = render(source, BOOK, ROOT / "constraints.txt")
    except (AssemblyError, CatalogueError, RenderingFailed) as error:
        return _complain(console, str(error))
    except KeyboardInterrupt:
        console.print("interrupted; the kernels end with this program")
        sys.stdout.flush()
        os._exit(INTERRUPTED)  # the threads that wait for a kernel cannot be told to stop
    state = "built" if changed else "unchanged"
    console.print(f"book: {state} in {time.monotonic() - started:.0f} s; open {BOOK / '_build/html/index.html'}")
    return 0


def _complain(console: Console, *lines: str) -> int:
    for line in lines:
        console.print(f"\n{line}", markup=False)
    return 1


if __name__ == "__main__":
    sys.exit(main())
