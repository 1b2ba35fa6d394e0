"""The built site, visits to it, and the zoo's Python. A page is opened from its file: no server, no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, Request

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "book" / "_build" / "html"
ZOO_PYTHON = os.environ.get("BUG_ZOO_PYTHON", sys.executable)  # `nox -s pages` sets it: its own has no PyTorch
AT_ONCE = "* { transition: none !important; }"  # or axe sees colours half way from one theme to the other
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def in_the_zoo(*arguments: str | Path, folder: Path = ROOT) -> str:
    """Run the zoo's Python in a folder, and return what it prints; its exit code may be any.

    With the thread of a verification on two cores: what it has kept of an exhibit's script is not run again.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [ZOO_PYTHON, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, env=environment, timeout=600
    )
    return done.stdout


class Visit:
    """A page that was opened, and what went wrong on it: errors, and requests that leave the site."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda said: said.type == "error" and self.wrong.append(f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", lambda request: self._asked(request.url))

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # a page that is left before its last picture has come
            self.wrong.append(f"failed: {request.url} ({request.failure})")

    def _asked(self, address: str) -> None:
        if not address.startswith((SITE.as_uri(), "data:", "blob:", "about:")):
            self.wrong.append(f"outside: {address}")

    def open(self, name: str) -> Page:
        """Open a page of the site: `paste`, `rules/ragged-batch`."""
        self.page.goto(f"{(SITE / name).as_uri()}.html", wait_until="load")
        return self.page

    @property
    def scrolling_blocks(self) -> list[str]:
        """What scrolls sideways within the page, but for tables."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll("article *")]
                .filter(part => part.scrollWidth > part.clientWidth + 1 && !part.querySelector("table")
                    && !part.closest("table") && /auto|scroll/.test(getComputedStyle(part).overflowX))
                .map(part => part.outerHTML.slice(0, 200))"""
        )

    @property
    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than the window."""
        return self.page.evaluate(
            "() => document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"
        )
