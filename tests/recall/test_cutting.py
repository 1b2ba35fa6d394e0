"""Scripts whose training ends early: what follows the training still runs."""

from __future__ import annotations

import textwrap

import pytest

from tests.recall.cutting import CUTS, cut
from tests.recall.programs import IN_TURN, cut_programs, source

BEGINNING = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    loader = DataLoader(TensorDataset(torch.ones(20, 4)), batch_size=2)

    def train(rows):
        optimizer.zero_grad()
        model(rows).mean().backward()
        optimizer.step()
"""
EPOCHS = """
    for epoch in range(5):
        for (rows,) in loader:
            train(rows)
    after = len(steps)
"""
IN_A_FUNCTION = """
    def fit():
        for (rows,) in loader:
            train(rows)

    def main():
        for epoch in range(5):
            fit()
        return len(steps)

    after = main()
"""
CONTINUES = """
    for number in range(90):
        if number % 2:
            continue
        train(torch.ones(2, 4))
    after = len(steps)
"""
TWICE = """
    for rate in (0.1, 0.2):
        for epoch in range(5):
            for (rows,) in loader:
                train(rows)
    after = len(steps)
"""
PHASES = EPOCHS + EPOCHS


def steps_after(script: str, length: str) -> int:
    """Run a script that is cut, and return how many steps it has made when its training is over."""
    written = cut(textwrap.dedent(BEGINNING) + textwrap.dedent(script), length)
    assert written is not None
    names: dict = {"__name__": "__main__"}
    exec(compile(written, "script.py", "exec"), names)
    assert names["after"] == len(names["steps"])
    return names["after"]


@pytest.mark.parametrize(
    ("script", "length", "steps"),
    [
        (EPOCHS, "16", 16),
        (EPOCHS, "64", 50),
        (EPOCHS, "epoch", 10),
        (IN_A_FUNCTION, "16", 16),
        (IN_A_FUNCTION, "epoch", 10),
        (CONTINUES, "30", 15),
        (TWICE, "16", 32),
        (PHASES, "16", 32),
    ],
    ids=["steps", "more than it has", "an epoch", "function", "epoch by function", "continue", "list", "phases"],
)
def test_loop_ends_after_so_many_passes(script: str, length: str, steps: int) -> None:
    assert steps_after(script, length) == steps


def test_keras_fit_gets_a_callback_beside_its_own() -> None:
    written = cut("import keras\nmodel.fit(x, y, epochs=9, callbacks=[best])", "16")
    assert written is not None
    assert "model.fit(x, y, epochs=9, callbacks=[best, StopEarly(16)])" in written
    assert cut("model.fit(x, y, epochs=9)", "epoch") == "model.fit(x, y, epochs=1)"


@pytest.mark.parametrize("arguments", ["x, y, 32, 9, verbose=0", "*train, 32, 9, verbose=0"])
def test_keras_fit_with_epochs_by_place_is_stopped_after_one(arguments: str) -> None:
    written = cut(f"model.fit({arguments})", "epoch")
    assert written is not None
    assert f"model.fit({arguments}, callbacks=[StopEarly()])" in written
    compile(written, "script", "exec")


def test_trainer_gets_fewer_steps_or_one_epoch() -> None:
    script = "TrainingArguments('out', num_train_epochs=3, max_steps=500)"
    assert cut(script, "16") == "TrainingArguments('out', num_train_epochs=1000, max_steps=16)"
    assert cut(script, "epoch") == "TrainingArguments('out', num_train_epochs=1, max_steps=-1)"


@pytest.mark.parametrize("length", CUTS)
def test_nothing_to_cut_is_told_by_none(length: str) -> None:
    assert cut("scaler.fit(x)\nfor row in x:\n    scheduler.step()", length) is None


def test_the_sample_of_ci_has_every_cut_and_can_be_run() -> None:
    chosen = cut_programs([IN_TURN], 16)
    assert {program.cut for program in chosen} == set(CUTS)
    assert len(chosen) >= 25
    for program in chosen:
        compile(source(program), program.path.name, "exec")
