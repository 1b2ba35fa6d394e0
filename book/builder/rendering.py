"""Jupyter Book makes the site; every warning is an error. `nox -s pages` looks at the pages in a browser."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

COPIES = "_copies"  # folder of the source, whose files take the place of what Sphinx has put into the site
# The sidebar's triangles, which the theme gives no name that a screen reader could say.
UNNAMED = re.compile(
    r'(<a class="(?:current )?reference internal"[^>]*>\s*)([^<]+?)(\s*</a>\s*<details[^>]*>)<summary>'
)
# A name that differs from what is on the button or fold: who asks for "Show the answer" by voice would not get it.
MISNAMED = (
    (re.compile(r'(<button class="btn search-button-field[^>]*?) aria-label="Search"'), r"\1"),
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    (re.compile(r'(<i class="theme-switch [^>]*?)\s+title="[^"]*"'), r"\1"),  # of an icon, in a button with a name
)


class RenderingFailed(RuntimeError):
    """The site could not be made; `str()` says why, in Jupyter Book's words where they are the reason."""


def render(source: Path, book: Path, constraints: Path) -> bool:
    """Make `book/_build/html` out of the folder `source`; return whether there was anything to do.

    The site is re-created whenever a byte of the source, or the versions, changed. Sphinx could do it page by
    page, but says nothing about the warnings of pages that it skips: a build that failed would then pass.

    Raises:
        RenderingFailed: Jupyter Book warned or failed.
    """
    site, stamp = book / "_build" / "html", book / "_build" / "rendered"
    key = _digest(source, constraints)
    if stamp.is_file() and stamp.read_text() == key and (site / "index.html").is_file():
        return False
    stamp.unlink(missing_ok=True)
    for leftover in (site, book / "_build" / ".doctrees", book / "_build" / "_page"):
        shutil.rmtree(leftover, ignore_errors=True)
    program = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "build", str(source), "--path-output", str(book)]
    strict = ["-W", "-n", "--keep-going", "--quiet"]
    done = subprocess.run([*command, *strict], capture_output=True, text=True)
    if done.returncode != 0:
        raise RenderingFailed(f"Jupyter Book failed, or warned, and a warning is an error here:\n\n{_said(done)}")
    _name_controls(site)
    if (source / COPIES).is_dir():
        shutil.copytree(source / COPIES, site, dirs_exist_ok=True)
    stamp.write_text(key)
    return True


def _name_controls(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = UNNAMED.sub(_named, page.read_text("utf-8"))
        for theirs, ours in MISNAMED:
            text = theirs.sub(ours, text)
        page.write_text(text, "utf-8")


def _named(found: re.Match[str]) -> str:
    page = found[2].replace('"', "&quot;")
    return f'{found[1]}{found[2]}{found[3]}<summary aria-label="Pages below {page}">'


def _digest(source: Path, constraints: Path) -> str:
    digest = hashlib.sha256(constraints.read_bytes())
    for file in sorted(file for file in source.rglob("*") if file.is_file()):
        digest.update(f"\0{file.relative_to(source)}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """Return the warnings and errors; where there are none, the end of everything."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr).splitlines()
    telling = [line for line in lines if re.search(r"WARNING|ERROR|Error:|Exception", line)]
    return "\n".join(dict.fromkeys(telling)) or "\n".join(lines[-20:])
