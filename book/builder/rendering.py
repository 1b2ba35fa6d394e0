"""Jupyter Book makes the site, every warning an error; nothing comes from elsewhere, every figure has words."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

COPIES = "_copies"  # folder of the source, whose files take the place of what Sphinx has put into the site
FETCHING = {  # attributes whose address a browser fetches without being asked
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
}
NAMED_ONLY = {"canonical", "author", "license", "search"}  # links that a browser does not follow by itself
# The sidebar's triangles, which the theme gives no name that a screen reader could say.
UNNAMED = re.compile(
    r'(<a class="(?:current )?reference internal"[^>]*>\s*)([^<]+?)(\s*</a>\s*<details[^>]*>)<summary>'
)
FILE = re.compile(r"\.(png|svg|jpe?g|gif|webp)$", re.IGNORECASE)  # the words that Sphinx puts where there are none
OUTSIDE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
OUTSIDE_IN_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s;]+)""", re.IGNORECASE)


class RenderingFailed(RuntimeError):
    """The site could not be made; `str()` says why, in Jupyter Book's words where they are the reason."""


def render(source: Path, book: Path, constraints: Path) -> bool:
    """Make `book/_build/html` out of the folder `source`; return whether there was anything to do.

    The site is re-created whenever a byte of the source, or the versions, changed. Sphinx could do it page by
    page, but says nothing about the warnings of pages that it skips: a build that failed would then pass.

    Raises:
        RenderingFailed: Jupyter Book warned or failed, a page fetches something from elsewhere, or a figure has no
            words for those who do not see it.
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
    _name_triangles(site)
    if (source / COPIES).is_dir():
        shutil.copytree(source / COPIES, site, dirs_exist_ok=True)
    if outside := fetched_from_elsewhere(site):
        raise RenderingFailed("The book must open without a network, but it would fetch:\n\n" + "\n".join(outside))
    if silent := figures_without_words(site):
        raise RenderingFailed(
            "Every figure needs words (mystnb: image: alt) for its reader:\n\n" + "\n".join(silent)
        )
    stamp.write_text(key)
    return True


def _name_triangles(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        page.write_text(UNNAMED.sub(_named, text), "utf-8")


def _named(found: re.Match[str]) -> str:
    page = found[2].replace('"', "&quot;")
    return f'{found[1]}{found[2]}{found[3]}<summary aria-label="Pages below {page}">'


def fetched_from_elsewhere(site: Path) -> list[str]:
    """List what the pages and styles under `site` would fetch from another server: `page: address`."""
    found = []
    for page in sorted(site.rglob("*.html")):
        reader = _Addresses()
        reader.feed(page.read_text("utf-8"))
        found += [f"{page.relative_to(site)}: {address}" for address in reader.outside]
    for style in sorted(site.rglob("*.css")):
        for address in OUTSIDE_IN_CSS.findall(style.read_text("utf-8")):
            found.append(f"{style.relative_to(site)}: {address}")
    return list(dict.fromkeys(found))


def figures_without_words(site: Path) -> list[str]:
    """List the figures under `site` that say nothing to those who do not see them: `page: figure`."""
    found = []
    for page in sorted(site.rglob("*.html")):
        if page.relative_to(site).parts[0] != "_static":  # where the theme keeps templates
            reader = _Figures()
            reader.feed(page.read_text("utf-8"))
            found += [f"{page.relative_to(site)}: {figure}" for figure in reader.silent]
    return found


class _Figures(HTMLParser):
    """Collects the images without an alternative text, and the drawings without a label."""

    def __init__(self) -> None:
        super().__init__()
        self.silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: (value or "").strip() for name, value in attrs}
        if tag == "img" and (not values.get("alt") or FILE.search(values["alt"])):
            self.silent.append(values.get("src", "an image")[:100])
        if tag == "svg" and not (values.get("aria-label") or values.get("aria-hidden") == "true"):
            self.silent.append(f"a drawing in line {self.getpos()[0]}")


class _Addresses(HTMLParser):
    """Collects the addresses of other servers that a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        if tag == "link" and values.get("rel", "") in NAMED_ONLY:
            return
        for name in FETCHING.get(tag, ()):
            if OUTSIDE.match(values.get(name, "")):
                self.outside.append(values[name])
        self.outside += OUTSIDE_IN_CSS.findall(values.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.outside += OUTSIDE_IN_CSS.findall(data)


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
