"""Hooks of a PyDataset that nothing calls."""

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers


class Rows(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        self.draw()

    def draw(self):
        self.x = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")

    def __len__(self):
        return 4

    def __getitem__(self, place):
        part = slice(16 * place, 16 * place + 16)
        return self.x[part], (self.x[part, 0] > 0).astype("int")


class Misnamed(Rows):
    def on_epoch_starting(self):
        self.draw()


class Called(Rows):
    def __getitem__(self, place):
        if place == 0:
            self.on_first_batch()
        return super().__getitem__(place)

    def on_first_batch(self):
        self.draw()


class Hooked(Rows):
    def on_epoch_end(self):
        self.draw()


@pytest.mark.parametrize(("kind", "found"), [(Misnamed, 1), (Called, 0), (Hooked, 0), (Rows, 0)])
def test_names_only_a_hook_that_nothing_calls(kind, found):
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy")
    run = ScriptObserver()
    try:
        model.fit(kind(), epochs=2, verbose=0)
    finally:
        run.close()
    assert run.faults == []
    findings = [finding for report in run.examined for finding in report.findings]
    hooks = [finding for finding in findings if finding.rule == "repeated-batch"]
    assert [finding.severity for finding in hooks] == ["warning"] * found
