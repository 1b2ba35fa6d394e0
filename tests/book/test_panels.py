"""What the notebooks show beside a cage, made from the cage itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from book import panels
from bugs.keeper.catalogue import Exhibit, load_catalogue

CATALOGUE = load_catalogue(Path(__file__).parents[2])


class TestHints:
    def test_folds_all_three_and_escapes_them(self) -> None:
        exhibit = CATALOGUE["01"]
        shown = panels.hints(exhibit).data
        assert shown.count("<details><summary>Hint ") == 3
        assert "trainer.train_dataset[0]" in shown
        assert "<summary>Hint 3</summary><p>Two datasets" in shown


class TestRepair:
    @pytest.mark.parametrize("exhibit", CATALOGUE.values(), ids=CATALOGUE)
    def test_is_a_patch_that_makes_the_solution_of_the_broken_script(
        self, exhibit: Exhibit, tmp_path: Path
    ) -> None:
        lines = panels.repair(exhibit).data.splitlines()
        assert (lines[0], lines[-1]) == ("```diff", "```")
        changed = [line for line in lines[3:-1] if line[0] in "+-"]
        broken, solution = (path.read_text().splitlines() for path in (exhibit.script, exhibit.solution))
        assert changed
        assert all(line[1:] in (broken if line[0] == "-" else solution) for line in changed)
        assert not any("$ python" in line for line in changed)


class TestLastWords:
    def test_are_those_of_the_script_and_not_of_its_progress_bar(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        exhibit = dataclasses.replace(CATALOGUE["04"], root=tmp_path)
        exhibit.script.parent.mkdir(parents=True)
        exhibit.script.write_text(
            "from tqdm import tqdm\n"
            "steps = tqdm(range(282))\n"  # it is closed, and drawn once more, when the interpreter ends
            "raise IndexError('Target 2 is out of bounds.')\n"
        )
        panels.last_words(exhibit)
        assert capsys.readouterr().out == (
            "$ python bugs/04_wrong_label_count/train.py\n…\nIndexError: Target 2 is out of bounds.\n"
        )


class TestRecovery:
    def test_plots_loss_and_accuracy_beside_chance(self) -> None:
        history = [
            {"step": 10, "loss": "1.09"},
            {"step": 20, "loss": 0.7, "epoch": 0.5},
            {"step": 20, "eval_accuracy": 0.6, "eval_loss": 0.8},
            {"step": 20, "train_runtime": 3.0},
        ]
        loss, accuracy = panels.recovery(history, num_classes=3).axes
        (curve, chance), (points, guess) = loss.lines, accuracy.lines
        assert (list(curve.get_xdata()), list(curve.get_ydata())) == ([10, 20], [1.09, 0.7])
        assert chance.get_ydata()[0] == pytest.approx(1.0986, abs=1e-4)
        assert (list(points.get_xdata()), list(points.get_ydata())) == ([20], [0.6])
        assert guess.get_ydata()[0] == pytest.approx(1 / 3)
        assert (loss.get_xlabel(), loss.get_ylabel()) == ("training step", "training loss (nats)")
        assert accuracy.get_ylabel() == "evaluation accuracy"
