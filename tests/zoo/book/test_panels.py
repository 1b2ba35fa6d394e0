"""What the notebooks show beside a cage, made from the cage itself."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from book import panels
from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.keeper.manifest import Guess
from tests.support.ipython import Notebook, notebook

CATALOGUE = load_catalogue(Path(__file__).parents[3])


class TestHints:
    def test_folds_all_three_and_escapes_them(self) -> None:
        exhibit = CATALOGUE["01"]
        shown = panels.hints(exhibit).data
        assert shown.count("<details><summary>Hint ") == 3
        assert "trainer.train_dataset[0]" in shown
        assert "<summary>Hint 3</summary><p>The script has two datasets" in shown


class TestGuesses:
    @pytest.mark.parametrize("exhibit", CATALOGUE.values(), ids=CATALOGUE)
    def test_each_is_answered_and_one_is_open_at_a_time(self, exhibit: Exhibit) -> None:
        shown = panels.guesses(exhibit).data
        assert shown.count(f' name="guess-{exhibit.id}"><summary>') == len(exhibit.guesses) >= 3
        assert shown.count("</summary><p><strong>Yes.</strong> ") == 1
        assert shown.count("</summary><p><strong>No.</strong> ") == len(exhibit.guesses) - 1

    def test_what_they_say_is_escaped(self) -> None:
        exhibit = dataclasses.replace(CATALOGUE["01"], guesses=(Guess("a < b", "a & b", right=True),))
        assert "<summary>a &lt; b</summary><p><strong>Yes.</strong> a &amp; b</p>" in panels.guesses(exhibit).data

    def test_the_right_one_stands_in_different_places(self) -> None:
        places = [[guess.right for guess in exhibit.guesses].index(True) for exhibit in CATALOGUE.values()]
        assert all(places.count(place) <= len(places) // 2 for place in places)


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

    def test_are_not_those_of_a_bar_within_a_bar(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        exhibit = dataclasses.replace(CATALOGUE["17"], root=tmp_path)
        exhibit.script.parent.mkdir(parents=True)
        exhibit.script.write_text(
            "from tqdm import tqdm\n"
            "outer = tqdm(range(282), position=0)\n"
            "inner = tqdm(range(10), position=1)\n"
            "raise ValueError('Classification metrics')\n"
        )
        panels.last_words(exhibit)
        assert capsys.readouterr().out == (
            "$ python bugs/17_metric_on_logits/train.py\n…\nValueError: Classification metrics\n"
        )

    def test_of_a_script_that_comes_to_its_end_are_what_it_prints(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        exhibit = dataclasses.replace(CATALOGUE["13"], root=tmp_path)
        exhibit.script.parent.mkdir(parents=True)
        exhibit.script.write_text("import sys\nprint('eval_accuracy=0.935')\nprint('a remark', file=sys.stderr)\n")
        panels.last_words(exhibit)
        assert capsys.readouterr().out == "$ python bugs/13_detached_encoder/train.py\n…\neval_accuracy=0.935\n"

    def test_are_as_many_lines_as_wished_without_colours_and_no_wider_than_the_page(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        exhibit = dataclasses.replace(CATALOGUE["09"], root=tmp_path)
        exhibit.script.parent.mkdir(parents=True)
        exhibit.script.write_text(
            "print('Epoch 1/2')\n"
            "raise ValueError('Exception encountered.\\n\\n\\x1b[1mInvalid' + ' input shape' * 10 + '\\x1b[0m')\n"
        )
        panels.last_words(exhibit, lines=2)
        assert capsys.readouterr().out == (
            "$ python bugs/09_labels_in_inputs/train.py\n…\n"
            "ValueError: Exception encountered.\n"
            "Invalid input shape input shape input shape input shape input shape input shape input shape input\n"
            "shape input shape input shape\n"
        )


class TestRunHere:
    @pytest.fixture
    def page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
        with notebook(tmp_path) as page:
            monkeypatch.setattr("IPython.get_ipython", lambda: page.shell)
            yield page

    @pytest.fixture
    def exhibit(self, tmp_path: Path) -> Exhibit:
        exhibit = dataclasses.replace(CATALOGUE["13"], root=tmp_path)
        exhibit.script.parent.mkdir(parents=True)
        return exhibit

    def test_keeps_the_variables_and_shows_the_end_of_what_was_printed(
        self, page: Notebook, exhibit: Exhibit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        exhibit.script.write_text(
            "import sys\n"
            "if __name__ == '__main__': loss = 0.5\n"
            "print('epoch 1')\n"
            "print('a remark', file=sys.stderr)\n"
            "print(f'{loss=}')\n"
        )
        assert panels.run_here(exhibit) == "epoch 1\nloss=0.5"
        assert page["loss"] == 0.5
        assert capsys.readouterr() == ("$ python bugs/13_detached_encoder/train.py\n…\nloss=0.5\n", "")

    def test_raises_what_the_script_raises(self, page: Notebook, exhibit: Exhibit) -> None:
        exhibit.script.write_text("raise IndexError('Target 2 is out of bounds.')\n")
        with pytest.raises(IndexError):
            panels.run_here(exhibit)

    def test_a_crash_keeps_the_variables_and_its_traceback_begins_in_the_script(
        self, page: Notebook, exhibit: Exhibit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        exhibit.script.write_text("def step():\n    raise IndexError('out of bounds')\n\nsize = 3\nstep()\n")
        crash = panels.crash_here(exhibit)
        assert page["size"] == 3
        assert capsys.readouterr().out == (
            "$ python bugs/13_detached_encoder/train.py\n…\nIndexError: out of bounds\n"
        )
        assert [frame.name for frame in traceback.extract_tb(crash.__traceback__)] == ["<module>", "step"]
        panels.show_crash(crash)
        shown = capsys.readouterr().out
        assert "train.py:5" in shown
        assert "train.py:2, in step()" in shown
        assert "panels.py" not in shown

    def test_a_script_without_a_crash_is_not_taken_for_one(self, page: Notebook, exhibit: Exhibit) -> None:
        exhibit.script.write_text("print('eval_accuracy=0.935')\n")
        with pytest.raises(RuntimeError, match="came to its end"):
            panels.crash_here(exhibit)


@pytest.fixture
def line() -> Callable[..., str]:
    """A Keras script of one weight, which is wrong about its sign; losses and weights are known in advance."""

    def script(epochs: int) -> str:
        return (
            "import keras\n"
            "import numpy as np\n"
            "import tensorflow as tf\n"
            f"EPOCHS = {epochs}\n"
            "rows = np.array([[1.0], [2.0], [3.0], [4.0]], 'float32')\n"
            "train = tf.data.Dataset.from_tensor_slices((rows, -rows)).batch(1)\n"
            "validation = tf.data.Dataset.from_tensor_slices((rows, np.array([0, 0, 0, 1]))).batch(3)\n"
            "model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer='ones')])\n"
            "model.compile(optimizer=keras.optimizers.SGD(0.0), loss='mean_squared_error')\n"
            "\n"
            "model.fit(train, epochs=EPOCHS)\n"
            "\n"
            "print(f'loss={model.evaluate(train, verbose=0):.1f}')\n"
        )

    return script


class TestKerasLog:
    def test_has_the_loss_of_each_stretch_and_the_accuracy_as_a_trainer_would(
        self, line: Callable[..., str]
    ) -> None:
        namespace: dict[str, object] = {}
        before, _ = line(epochs=2).split("\nmodel.fit(train, epochs=EPOCHS)\n")
        exec(before, namespace)
        log = panels.keras_log(namespace["validation"], every=2, evaluate_every=8)
        namespace["model"].fit(namespace["train"], epochs=2, callbacks=[log], verbose=0)  # type: ignore[attr-defined]
        # The errors are 2, 4, 6 and 8 in each epoch, and nothing is learned; the one output there is is class 0.
        losses = [(entry["step"], entry["loss"]) for entry in log.log_history if "loss" in entry]
        assert [step for step, _ in losses] == [2, 4, 6, 8]
        assert [loss for _, loss in losses] == pytest.approx([10.0, 50.0, 10.0, 50.0])
        assert [entry for entry in log.log_history if "loss" not in entry] == [{"step": 8, "eval_accuracy": 0.75}]


class TestPrintedLog:
    def test_has_the_loss_of_each_stretch_and_the_accuracy_at_the_end(
        self, line: Callable[..., str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        namespace: dict[str, object] = {}
        exec(line(epochs=1) + "print('eval_accuracy=0.750')\n", namespace)
        log = panels.printed_log(CATALOGUE["09"], capsys.readouterr().out, every=4)
        assert log == [{"step": 4, "loss": pytest.approx(30.0)}, {"step": 4, "eval_accuracy": 0.75}]

    def test_reads_the_bar_wherever_it_was_drawn(self) -> None:
        colours = "\r\x1b[1m{}/90\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m3s\x1b[0m 9ms/step - loss: {}"
        bars = [(1, 1.2), (19, 1.1), (21, 1.0), (40, 0.9), (61, 0.8), (90, 0.5)]
        printed = "\b\b\b".join(colours.format(f"{step:2}", f"{mean:.4f}") for step, mean in bars)
        evaluation = "\n" + colours.format(30, 0.4) + "\neval_loss=0.400\neval_accuracy=0.812\n"
        *losses, end = panels.printed_log(CATALOGUE["09"], printed + evaluation)
        assert [entry["step"] for entry in losses] == [21, 61, 90]
        expected = [1.0, (61 * 0.8 - 21 * 1.0) / 40, (90 * 0.5 - 61 * 0.8) / 29]
        assert [entry["loss"] for entry in losses] == pytest.approx(expected)
        assert end == {"step": 90, "eval_accuracy": 0.812}


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

    def test_draws_the_broken_script_beside_it(self) -> None:
        broken = [{"step": 10, "loss": 1.5}, {"step": 20, "loss": 1.1}, {"step": 20, "eval_accuracy": 0.3}]
        loss, accuracy = panels.recovery([{"step": 20, "loss": 0.7}], num_classes=3, broken=broken).axes
        assert [text.get_text() for text in loss.get_legend().get_texts()] == ["broken", "fixed"]
        grey, blue, _ = loss.lines
        assert (list(grey.get_xdata()), list(grey.get_ydata())) == ([10, 20], [1.5, 1.1])
        assert (list(blue.get_xdata()), list(blue.get_ydata())) == ([20], [0.7])
        points, _ = accuracy.lines
        assert list(points.get_ydata()) == [0.3]


class TestSpread:
    def test_has_a_cell_for_each_place_in_each_moment_and_says_how_much_of_it_is_not_finite(self) -> None:
        (axes,) = panels.spread(
            {
                "start\nweights": {"embedding": 0.0, "head": 0.0},
                "step 1\noutputs": {"embedding": 0.0, "head": 0.001, "loss": 0.999},
                "step 1\nweights": {"embedding": 0.5, "head": 1.0},
            }
        ).axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["embedding", "head", "loss"]
        assert [label.get_text() for label in axes.get_xticklabels()] == [
            "start\nweights", "step 1\noutputs", "step 1\nweights",
        ]  # fmt: skip
        shown = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts}
        assert shown == {
            (0.5, 0.5): "0 %", (0.5, 1.5): "0 %", (0.5, 2.5): "50 %",
            (1.5, 0.5): "0 %", (1.5, 1.5): "1 %", (1.5, 2.5): "100 %",  # of no part is it said that it is none
            (2.5, 1.5): "99 %",  # nor that it is all; and what has no value in a moment stays empty
        }  # fmt: skip


class TestHalves:
    def test_are_the_script_up_to_a_line_and_from_the_next_on(self, tmp_path: Path) -> None:
        script = tmp_path / "train.py"
        script.write_text("a = 1\ntrain()\nb = 2\n")
        before, after = panels.halves(script, "train()")
        assert (before.read_text(), after.read_text()) == ("a = 1\n", "b = 2\n\n")

    def test_a_line_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        script = tmp_path / "train.py"
        script.write_text("a = 1\n")
        with pytest.raises(ValueError, match=r"holds the line 'train\(\)' 0 times; expected once"):
            panels.halves(script, "train()")


class TestUpTo:
    def test_is_the_script_before_a_line_with_other_constants(self, tmp_path: Path) -> None:
        script = tmp_path / "train.py"
        script.write_text("RATE = 1e-3  # of Adam\nEPOCHS = 2\n\nfor epoch in range(EPOCHS):\n    step(RATE)\n")
        assert panels.up_to(script, "for epoch", RATE=0.5).read_text() == "RATE = 0.5\nEPOCHS = 2\n\n"

    def test_what_is_not_there_is_named(self, tmp_path: Path) -> None:
        script = tmp_path / "train.py"
        script.write_text("RATE = 1e-3\ntrain()\n")
        with pytest.raises(ValueError, match="no line begins with 'fit'"):
            panels.up_to(script, "fit")
        with pytest.raises(ValueError, match="has no constant EPOCHS"):
            panels.up_to(script, "train()", EPOCHS=1)


class TestFramed:
    def test_holds_the_page_as_an_attribute(self) -> None:
        shown = panels.framed('<p title="a">1 < 2</p>').data
        assert 'srcdoc="&lt;p title=&quot;a&quot;&gt;1 &lt; 2&lt;/p&gt;"' in shown
        assert 'title="The report of diagnose run"' in shown


class TestDiagnosed:
    def test_prints_the_command_what_the_script_prints_and_a_report_without_colours(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")  # as Jupyter does
        script = tmp_path / "train.py"
        script.write_text("print('accuracy=0.5')\n")
        panels.diagnosed(script)
        said = capsys.readouterr().out
        assert said.startswith("$ diagnose run train.py\naccuracy=0.5\n")
        assert "ran train.py" in said
        assert "\x1b" not in said
