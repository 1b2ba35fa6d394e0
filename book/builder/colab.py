"""An exhibit's notebook in Colab: the address that opens it there, and the cell that installs the zoo first."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode, v4

from bugs.zoo.keeper.catalogue import Exhibit

# Not with constraints.txt: Colab has frameworks of its own, built for its cards. A script that a cell starts finds
# `bugs` by PYTHONPATH.
INSTALL = """\
# Installs the zoo where it is missing, as on Colab: some two minutes. Elsewhere this does nothing.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("bugs") is None:
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", "{address}", "bug-zoo"], check=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "./bug-zoo[zoo]", "matplotlib"], check=True)
    sys.path.insert(0, os.path.abspath("bug-zoo"))
    os.environ["PYTHONPATH"] = os.path.abspath("bug-zoo")
"""


@dataclass(frozen=True)
class Published:
    """Where the zoo is published.

    Attributes:
        repository: its owner and name on GitHub; empty if it is not there.
        site: the branch that holds the built book.
    """

    repository: str
    site: str

    @property
    def address(self) -> str:
        """What git clones."""
        return f"https://github.com/{self.repository}.git"

    def in_colab(self, exhibit: Exhibit) -> str:
        """Return the address that opens an exhibit's notebook in Colab."""
        file = f"_sources/{exhibit.page}.ipynb"  # Sphinx keeps there what a page was made of
        return f"https://colab.research.google.com/github/{self.repository}/blob/{self.site}/{file}"


def published(book: Path) -> Published | None:
    """Return where the zoo is published, as `book/published.toml` says; None if nowhere."""
    said = Published(**tomllib.loads((book / "published.toml").read_text("utf-8")))
    return said if said.repository else None


def install_cell(where: Published) -> NotebookNode:
    """Return the cell that installs the zoo. The page leaves it out."""
    source = INSTALL.format(address=where.address)
    return v4.new_code_cell(source, id="install", metadata={"tags": ["remove-cell"]})
