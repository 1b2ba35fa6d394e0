"""Notebook files, made of their cells."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

Cell = str | tuple[int | None, str]
PYTHON = {"kernelspec": {"name": "python3", "language": "python"}, "language_info": {"name": "python"}}


def code(source: str, count: int | None = None, *, tags: tuple[str, ...] = (), fails: bool = False) -> dict:
    """Return a code cell; `fails`: whether its stored output is an error."""
    error = {"output_type": "error", "ename": "NameError", "evalue": "name 'x' is not defined", "traceback": []}
    return {
        "cell_type": "code",
        "source": textwrap.dedent(source).strip("\n").splitlines(keepends=True),
        "execution_count": count,
        "outputs": [error] if fails else [],
        "metadata": {"tags": list(tags)} if tags else {},
    }


def write(path: Path, *cells: Cell | dict, metadata: dict | None = None) -> Path:
    """Write a notebook of code cells, each a text, or a text after the number of its run."""
    made = []
    for cell in cells:
        if isinstance(cell, str):
            cell = (None, cell)
        made.append(cell if isinstance(cell, dict) else code(cell[1], cell[0]))
        made.append({"cell_type": "markdown", "source": "## What comes next", "metadata": {}})
    content = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": PYTHON if metadata is None else metadata,
        "cells": made,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def numbered(*cells: str) -> list[tuple[int, str]]:
    """Number cells as after Restart and Run All."""
    return list(enumerate(cells, 1))


def in_percent_format(text: str) -> list[dict]:
    """Read cells that each begin with a line ``# %%``, then ``In[3]`` if it was run, ``failed``, and tags."""
    cells = []
    for head, source in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n)*)", text, re.MULTILINE):
        words = head.split()
        count = next((int(word[3:-1]) for word in words if word.startswith("In[")), None)
        tags = tuple(word for word in words if not word.startswith("In[") and word != "failed")
        cells.append(code(source, count, tags=tags, fails="failed" in words))
    return cells
