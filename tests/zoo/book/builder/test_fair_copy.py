"""What readers get of an executed notebook: the same, shorter, and without the machine that ran it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from nbformat import v4

from book.builder.fair_copy import fair_copy, shorten

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

    @pytest.mark.parametrize(
        ("printed", "shown"),
        [
            ("\r 50%|##  | 1/2 [00:01<00:01]\r100%|####| 2/2 [00:02<00:00]\nloss 1.1\n", "loss 1.1\n"),
            (" 33%|###  | 1/3 [00:00<00:00]{'loss': 1.09}\rloss 1.1\n", "loss 1.1\n"),
            ("accuracy 90%\n| a | table |\n", "accuracy 90%\n| a | table |\n"),
            ("1/4 \r4/4 ━━━━ loss: 1.1\n\n", "1/4 \r4/4 ━━━━ loss: 1.1\n\n"),  # Keras's own, which is read
            (
                "tqdm/auto.py:21: TqdmWarning: IProgress not found. Please update jupyter and ipywidgets.\n"
                "  from .autonotebook import tqdm as notebook_tqdm\nloss 1.1\n",
                "loss 1.1\n",
            ),
            (
                'rich/live.py:256: UserWarning: install "ipywidgets" for Jupyter support\n'
                "  warnings.warn('install \"ipywidgets\" for Jupyter support')\n",
                None,
            ),
        ],
    )
    def test_shows_no_progress_and_no_missing_widgets(self, printed: str, shown: str | None) -> None:
        cell = v4.new_code_cell("1", outputs=[v4.new_output("stream", text=printed)])
        (fair,) = fair_copy(v4.new_notebook(cells=[cell]), ZOO).cells
        assert [output.text for output in fair.outputs] == ([] if shown is None else [shown])

    def test_shows_no_widget(self) -> None:
        widget = {"text/plain": "0%| | 0/10", "application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
        outputs = [v4.new_output("display_data", widget), v4.new_output("display_data", {"text/plain": "1"})]
        cell = v4.new_code_cell("1", outputs=outputs)
        (fair,) = fair_copy(v4.new_notebook(cells=[cell]), ZOO).cells
        assert [output.data for output in fair.outputs] == [{"text/plain": "1"}]

    def test_shows_no_cache_wherever_it_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ZOO_CACHE", "/mnt/scratch/zoo")
        cell = v4.new_code_cell("1", outputs=[v4.new_output("stream", text="/mnt/scratch/zoo/checkpoint-3\n")])
        (fair,) = fair_copy(v4.new_notebook(cells=[cell]), ZOO).cells
        assert fair.outputs[0].text == "~/.cache/bug-zoo/checkpoint-3\n"

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
