"""The folds of a cross-validation that train one and the same model."""

import numpy as np
import pytest

from diagnostics.collectors.keras.discover.evaluations import FITS, Folds
from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers

X = np.random.default_rng(0).normal(size=(120, 6)).astype("float32")
Y = (X[:, 0] > 0).astype(int)
folds_of = np.arange(120) % 4  # each row's


def made():
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy")
    return model


def leaks(script):
    """Return the findings of a script about leaked rows."""
    keras.utils.set_random_seed(0)
    run = ScriptObserver()
    try:
        script()
    finally:
        run.close()
    assert run.faults == []
    findings = [finding for report in run.examined for finding in report.findings]
    return [finding for finding in findings if finding.rule == "leaked-evaluation-rows"]


def folds(prepare, judge):
    """Fit each fold; `prepare` returns the model for it, or changes it."""
    model = made()
    first = model.get_weights()
    for number in range(4):
        model = prepare(model, first) or model
        train, test = folds_of != number, folds_of == number
        options = {"validation_data": (X[test], Y[test])} if judge == "validation" else {}
        model.fit(X[train], Y[train], verbose=0, **options)
        if judge == "evaluate":
            model.evaluate(X[test], Y[test], verbose=0)
        elif judge == "predict":
            model.predict(X[test], verbose=0)


def same(_model, _first):
    """Go on with the model."""


def anew(_model, _first):
    return made()


def compiled_anew(model, _first):
    model.compile("adam", "binary_crossentropy")


def set_back(model, first):
    model.set_weights(first)


@pytest.mark.parametrize(
    ("prepare", "judge"),
    [(same, "evaluate"), (same, "predict"), (same, "validation"), (compiled_anew, "evaluate")],
)
def test_names_a_model_that_all_folds_train(prepare, judge):
    (finding,) = leaks(lambda: folds(prepare, judge))
    assert finding.severity == "warning"
    assert finding.message.startswith(
        "The 30 rows of an evaluation were held out of this model's latest training run, but 30 of them were "
        "used in an earlier one (3 training runs in all)"
    )


@pytest.mark.parametrize(("one_model", "found"), [(True, 1), (False, 0)])
def test_names_folds_that_are_scaled_anew(one_model, found):
    def script():
        model = made()
        for number in range(4):
            model = model if one_model else made()
            train, test = folds_of != number, folds_of == number
            middle, spread = X[train].mean(axis=0), X[train].std(axis=0)
            model.fit((X[train] - middle) / spread, Y[train], verbose=0)
            model.evaluate((X[test] - middle) / spread, Y[test], verbose=0)

    assert len(leaks(script)) == found


@pytest.mark.parametrize("prepare", [anew, set_back])
def test_says_nothing_where_each_fold_begins_anew(prepare):
    assert leaks(lambda: folds(prepare, "evaluate")) == []


def test_says_nothing_of_tasks_that_are_learned_in_turn():
    def script():
        model = made()
        for number in range(4):
            model.fit(X[folds_of == number], Y[folds_of == number], verbose=0)
            for earlier in range(number):
                model.evaluate(X[folds_of == earlier], Y[folds_of == earlier], verbose=0)

    assert leaks(script) == []


def test_says_nothing_of_rows_that_the_latest_fit_had():
    def script():
        model = made()
        for number in range(4):
            model.fit(X[folds_of != number], Y[folds_of != number], verbose=0)
            model.evaluate(X, Y, verbose=0)

    assert leaks(script) == []


def test_an_agent_that_fits_each_batch_is_followed_for_a_bounded_number_of_fits():
    followed = Folds()
    model = made()
    for number in range(FITS + 5):
        followed.fit_begins(model, X + np.float32(number))
        followed.fit_ended(model)
        kept = followed._fits.get(model)
        assert (kept is None) == (number >= FITS)
    assert followed.evaluated(model, X) is None
