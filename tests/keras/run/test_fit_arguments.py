"""What the arguments of `fit` let a script's training do: nothing, or end too early."""

import numpy as np

from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers

ROWS = np.random.default_rng(0).normal(size=(128, 6)).astype("float32")
TARGETS = ROWS[:, :1]


def found_after(script):
    run = ScriptObserver()
    try:
        model = keras.Sequential([layers.Input((6,)), layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.01), "mse")
        script(model)
    finally:
        run.close()
    assert run.faults == []
    return [(finding.rule, finding.severity) for report in run.examined for finding in report.findings]


def fit(model, **options):
    return model.fit(ROWS, TARGETS, batch_size=32, verbose=0, **options)


def test_a_second_fit_that_makes_no_step_is_named():
    def script(model):
        before = fit(model, epochs=2)
        fit(model, epochs=2, initial_epoch=before.epoch[-1] + 1)

    assert ("unchanged-parameters", "warning") in found_after(script)


def test_one_that_goes_on_is_not():
    def script(model):
        before = fit(model, epochs=2)
        fit(model, epochs=4, initial_epoch=before.epoch[-1] + 1)

    assert "unchanged-parameters" not in dict(found_after(script))


def test_a_least_gain_in_another_unit_is_named():
    def script(model):
        fit(model, epochs=9, callbacks=[keras.callbacks.EarlyStopping("loss", min_delta=5.0, patience=2)])

    assert ("monitored-backwards", "warning") in found_after(script)


def test_a_small_one_is_not():
    def script(model):
        fit(model, epochs=9, callbacks=[keras.callbacks.EarlyStopping("loss", min_delta=1e-4, patience=2)])

    assert "monitored-backwards" not in dict(found_after(script))
