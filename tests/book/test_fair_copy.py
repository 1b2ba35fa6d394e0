"""What readers get of an executed notebook: the same, shorter, and without the machine that ran it."""

from __future__ import annotations

import copy
from pathlib import Path

from nbformat import v4

from book.fair_copy import fair_copy, shorten

ZOO = Path("/home/keeper/zoo")
PACKAGES = "/home/keeper/zoo/.nox/env/lib/python3.11/site-packages"
HEAD, WORDS = "IndexError    Traceback (most recent call last)", "IndexError: Target 2 is out of bounds."
YOURS = f"File {ZOO}/bugs/04_wrong_label_count/train.py:72\n---> 72 trainer.train()"
TRAINER = f"\x1b[36mFile \x1b[39m\x1b[32m{PACKAGES}/transformers/trainer.py:1\x1b[39m, in Trainer.train(self)"
MODULE = f"File {PACKAGES}/torch/nn/modules/module.py:2, in Module._call_impl(self)"
LOSS = f"File {PACKAGES}/torch/nn/functional.py:3555, in cross_entropy(input, target)"


class TestShorten:
    def test_keeps_your_lines_and_the_last_frame(self) -> None:
        kept = shorten([HEAD, YOURS, TRAINER, MODULE, LOSS, WORDS], ZOO)
        left_out = "    [... 2 frames inside transformers and torch, not shown on this page ...]\n"
        assert kept == [HEAD, YOURS, left_out, LOSS, WORDS]

    def test_says_where_each_gap_is(self) -> None:
        callback = f"File {ZOO}/bugs/04_wrong_label_count/train.py:50, in compute_metrics(prediction)"
        kept = shorten([HEAD, YOURS, TRAINER, callback, MODULE, TRAINER, LOSS, WORDS], ZOO)
        first, second = (part for part in kept if "not shown" in part)
        assert "1 frame inside transformers, not shown" in first
        assert "2 frames inside torch and transformers, not shown" in second
        assert kept.index(first) < kept.index(callback) < kept.index(second)

    def test_leaves_a_short_one_alone(self) -> None:
        cell = "Cell In[5], line 1\n----> 1 raise ValueError"
        assert shorten([HEAD, cell, WORDS], ZOO) == [HEAD, cell, WORDS]
        assert shorten([HEAD, cell, LOSS, WORDS], ZOO) == [HEAD, cell, LOSS, WORDS]


class TestFairCopy:
    def test_shows_places_from_the_zoo_and_from_the_package(self) -> None:
        error = v4.new_output("error", ename="IndexError", evalue="", traceback=[HEAD, YOURS, LOSS, WORDS])
        places = f"surfaced at {PACKAGES}/torch/nn/functional.py:3555, from {Path.home()}/.cache/bug-zoo\n"
        stream = v4.new_output("stream", text=places)
        cell = v4.new_code_cell("%run", outputs=[error, stream])
        (fair,) = fair_copy(v4.new_notebook(cells=[cell]), ZOO).cells
        assert fair.outputs[0].traceback[1].startswith("File bugs/04_wrong_label_count/train.py:72\n")
        assert fair.outputs[0].traceback[2].startswith("File torch/nn/functional.py:3555, in")
        assert fair.outputs[1].text == "surfaced at torch/nn/functional.py:3555, from ~/.cache/bug-zoo\n"

    def test_hides_the_injected_parameters_and_forgets_the_machinery(self) -> None:
        injected = v4.new_code_cell("SEED = 0", metadata={"tags": ["injected-parameters"], "papermill": {"a": 1}})
        notebook = v4.new_notebook(cells=[injected], metadata={"papermill": {"input_path": "/tmp/x"}})
        original = copy.deepcopy(notebook)
        fair = fair_copy(notebook, ZOO)
        assert fair.metadata == {}
        assert fair.cells[0].metadata == {
            "tags": ["injected-parameters", "remove-cell"],
            "jupyter": {"source_hidden": True},
        }
        assert notebook == original
