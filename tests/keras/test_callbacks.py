"""The two callbacks as their users meet them: by name, refused arguments, and beside programs that train right."""

import re
import subprocess
import sys

import keras
import pytest
import torch
import transformers

import diagnostics
from tests.support.healthy import FOLDER, few_of, load

TRAINERS = sorted(FOLDER.glob("transformers/*.py"))
MODELS = sorted(FOLDER.glob("keras/*.py"))

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class TestNames:
    def test_are_subclasses_of_what_each_framework_calls(self):
        assert issubclass(diagnostics.TrainerCallback, transformers.TrainerCallback)
        assert issubclass(diagnostics.KerasCallback, keras.callbacks.Callback)

    @pytest.mark.parametrize(
        ("name", "others"),
        [("TrainerCallback", ("tensorflow", "keras")), ("KerasCallback", ("torch", "transformers"))],
    )
    def test_import_only_their_own_framework(self, name, others):
        code = f"import sys, diagnostics; diagnostics.{name}; print([n for n in {others!r} if n in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout == "[]\n", done.stderr

    def test_of_anything_else_are_no_attributes(self):
        with pytest.raises(AttributeError, match="module 'diagnostics' has no attribute 'IgniteCallback'"):
            diagnostics.IgniteCallback  # noqa: B018


@pytest.mark.parametrize("name", ["TrainerCallback", "KerasCallback"])
class TestRefuses:
    def refused(self, name, **options):
        with pytest.raises(diagnostics.InvalidInput) as error:
            getattr(diagnostics, name)(**options)
        return str(error.value)

    @pytest.mark.parametrize("every", [0, 2.5, True])
    def test_a_rhythm_that_is_none(self, name, every):
        assert self.refused(name, every=every) == (
            f"{name}() was given every={every!r}. It takes a number of steps, 1 or more."
        )

    def test_an_end_before_the_beginning(self, name):
        assert self.refused(name, stop_after=0) == (
            f"{name}() was given stop_after=0. It takes a number of steps, or None."
        )

    def test_what_is_no_logger(self, name):
        assert self.refused(name, logger=3) == (
            f"{name}() was given an int as logger. It takes a function of a dict and a step, a TensorBoard "
            "SummaryWriter, a Weights & Biases run, or the module mlflow."
        )


class TestWatch:
    def test_sends_a_trainer_to_its_callback(self, tmp_path):
        arguments = transformers.TrainingArguments(output_dir=str(tmp_path), report_to="none", use_cpu=True)
        trainer = transformers.Trainer(torch.nn.Linear(2, 2), arguments)
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.watch(trainer)
        assert str(error.value) == (
            "watch() was given a Trainer. A Trainer is watched by a callback: "
            "trainer.add_callback(diagnostics.TrainerCallback()) before train()."
        )

    def test_sends_a_keras_model_to_its_callback(self):
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.watch(keras.Sequential())
        assert str(error.value) == (
            "watch() was given the Keras model Sequential. Keras is watched by a callback: "
            "model.fit(..., callbacks=[diagnostics.KerasCallback()])."
        )


@pytest.mark.slow
@pytest.mark.parametrize("path", few_of(TRAINERS + MODELS), ids=lambda path: path.stem)
def test_a_healthy_program_is_watched_without_an_error_or_a_warning(path, capsys):
    kind = diagnostics.TrainerCallback if path in TRAINERS else diagnostics.KerasCallback
    program, callback = load(path), kind()
    program.train(*program.build(), callbacks=[callback])
    report = callback.report()
    assert report.ok, str(report)
    assert report.faults == ()
    assert re.match(r"watched [\d,]{2,} steps of", report.title)
    assert "watched" not in capsys.readouterr().err
