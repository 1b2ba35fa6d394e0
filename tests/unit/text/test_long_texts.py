"""Explaining a failure takes a bounded time, whatever its message, a log or a notebook is made of."""

import json
import time
from pathlib import Path

import pytest

import diagnostics
from diagnostics.cli.main import main

MOST_S = 3.0
RUNS = {
    "a word": "a", "nested": "[(",
    "DNA": "ACGTTGCA", "hex": "0f3a9c", "digits": "0", "spaces": " ", "newlines": "\n", "quotes": "'",
    "dots": ".", "slashes": "/", "parentheses": "(", "words": "a b ", "names": "a.b ", "lists": "[1, ",
}  # fmt: skip
HEADING = 'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    step()\n'


def of_length(run, length):
    return run * (length // len(run))


def live(message, folder):
    try:
        raise RuntimeError(message)
    except RuntimeError as error:
        diagnostics.explain(error)


def pasted(message, folder):
    (folder / "log.txt").write_text(f"{HEADING}RuntimeError: {message}\n")
    main(["explain", str(folder / "log.txt")])


def without_traceback(message, folder):
    (folder / "log.txt").write_text(message)
    main(["explain", str(folder / "log.txt")])


def _notebook(message, folder):
    error = {"output_type": "error", "ename": "RuntimeError", "evalue": message,
             "traceback": [*HEADING.splitlines(), f"RuntimeError: {message}"]}  # fmt: skip
    printed = {"output_type": "stream", "name": "stdout", "text": message}
    cell = {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "source": "step()",
        "outputs": [printed, error],
    }
    file = folder / "train.ipynb"
    file.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}))
    return str(file)


def explained_notebook(message, folder):
    main(["explain", _notebook(message, folder)])


def checked_notebook(message, folder):
    main(["notebook", _notebook(message, folder)])


def seconds(way, run, length, folder):
    started = time.process_time()
    way(of_length(run, length), folder)
    return time.process_time() - started


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("way", [live, pasted, without_traceback, explained_notebook, checked_notebook])
def test_long_texts_are_explained_in_bounded_time(way, run, tmp_path, capsys):
    whole = seconds(way, run, 128_000, tmp_path)
    if whole > 0.5:  # a busy machine makes some times longer, and none shorter
        quarter = min(seconds(way, run, 32_000, tmp_path) for _ in range(2))
        whole = min(whole, seconds(way, run, 128_000, tmp_path))
        assert whole < max(0.5, 7 * quarter)
    assert whole < MOST_S


def test_notebook_of_nested_brackets_is_refused_by_explain(tmp_path, capsys):
    (tmp_path / "train.ipynb").write_text("[" * 200_000)
    assert main(["explain", str(tmp_path / "train.ipynb")]) == 2
    assert "RecursionError" not in capsys.readouterr().err


def test_error_is_found_in_a_notebook_with_many_pictures(tmp_path, capsys):
    message = "mat1 and mat2 shapes cannot be multiplied (32x10 and 20x5)"
    notebook = json.loads(Path(_notebook(message, tmp_path)).read_text())
    notebook["cells"][0]["outputs"][0] = {"output_type": "display_data", "data": {"image/png": "A" * 9 * 2**20}}
    notebook["cells"][0]["outputs"].reverse()
    (tmp_path / "train.ipynb").write_text(json.dumps(notebook))
    main(["explain", str(tmp_path / "train.ipynb")])
    assert "shape-mismatch" in capsys.readouterr().out
