"""Keras code with side effects runs no more often under `diagnose run`, and what is not looked at is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import keras
from tests.side_effects.keras_code import CALLS, LOSSES, Program, Schedule, counting_steps

pytestmark = pytest.mark.filterwarnings("ignore")
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(96, 8)).astype("float32")
Y = (X[:, :2] > 0).astype("float32")
MODES = [pytest.param(False, id="graph"), pytest.param(True, id="eager")]


def fitted(build: Callable[[], Any], eager: bool, optimizer: Any = None) -> tuple[list[str], float]:
    """Train once; return what the program noticed, and the sum of its weights."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    np.random.seed(0)
    model, notice, loss = build()
    model.compile("sgd" if optimizer is None else optimizer(notice), loss, run_eagerly=eager)
    model.fit(X, Y, epochs=2, batch_size=32, verbose=0)
    sums = [float(np.abs(weights).sum()) for weights in model.get_weights()]
    return [*notice(), *map(float.hex, sums)]


def compare(build: Callable[[], Any], eager: bool, optimizer: Any = None) -> str:
    """Check that an observer changes nothing; return what its report says of the forward pass."""
    plain = fitted(build, eager, optimizer)
    observer = ScriptObserver(looks_again=True)
    try:
        observed = fitted(build, eager, optimizer)
    finally:
        observer.close()
    assert observed == plain
    assert observer.faults == []
    (training,) = observer.trainings
    return next(stage.detail for stage in training.examined.stages if stage.name == "forward and loss")


@pytest.mark.parametrize("eager", MODES)
@pytest.mark.parametrize("name", CALLS)
def test_call_with_a_side_effect_runs_no_more_often(name: str, eager: bool, tmp_path: Path, capsys: Any) -> None:
    said = compare(lambda: CALLS[name](tmp_path, capsys), eager)
    assert said.startswith("the model was not run, because running it could be noticed: ")


@pytest.mark.parametrize("eager", MODES)
@pytest.mark.parametrize("name", LOSSES)
def test_loss_with_a_side_effect_runs_no_more_often(name: str, eager: bool, tmp_path: Path, capsys: Any) -> None:
    said = compare(lambda: LOSSES[name](tmp_path, capsys), eager)
    assert said.startswith("the loss was not run, because running it could be noticed: ")


@pytest.mark.parametrize("eager", MODES)
def test_schedule_with_a_side_effect_is_not_asked(eager: bool, tmp_path: Path, capsys: Any) -> None:
    compare(lambda: Program(tmp_path, capsys).built(), eager, Schedule)


@pytest.mark.parametrize("eager", MODES)
def test_own_train_step_runs_no_more_often(eager: bool, tmp_path: Path, capsys: Any) -> None:
    compare(lambda: counting_steps(tmp_path, capsys), eager)
