"""Notebook sources of a few cells, and what it takes to run them for real."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from book.builder.execution import Job, Shelf, execute

HEADER = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Three labels, two outputs

```{code-cell} ipython3
:tags: [parameters]

SEED = 0
```
"""


def cell(code: str, *tags: str) -> str:
    """A code cell in MyST."""
    return f"\n```{{code-cell}} ipython3\n:tags: [{', '.join(tags)}]\n\n{code}\n```\n"


class Desk:
    """Sources on the left, the shelf on the right, and what the builder says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shelf = Shelf(folder / "executed")
        self.said = io.StringIO()

    def job(self, *cells: str, name: str = "04_wrong_label_count", depends_on: tuple[Path, ...] = ()) -> Job:
        """Write a notebook source."""
        source = self.folder / f"{name}.md"
        source.write_text(HEADER + "".join(cells))
        return Job(source, depends_on, {"SEED": 3})

    def run(self, *jobs: Job) -> tuple[list[str], list[str]]:
        """Execute; return the names of the good ones, and what is wrong with the others."""
        console = Console(file=self.said, width=100, force_terminal=False)
        done, failures = execute(jobs, self.shelf, console)
        return list(done), failures

    @property
    def line(self) -> str:
        """What the builder said last about how much there was to run."""
        return [line for line in self.said.getvalue().splitlines() if line.startswith("notebooks:")][-1]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    # What the builder sets for its kernels is put back after the test.
    for name in ("JUPYTER_PATH", "OMP_NUM_THREADS", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "")
    return Desk(tmp_path)


@pytest.fixture
def code_cell() -> Callable[..., str]:
    return cell
