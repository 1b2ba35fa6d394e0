"""A search over settings frees its models under `diagnose run` as it does without."""

import gc
import weakref

from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import FEATURES, X, Y, from_logits, keras, layers


def trained():
    """Return a small model that has taken some steps."""
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(8, activation="relu"), layers.Dense(3)])
    model.compile("adam", from_logits())
    model.fit(X, Y, verbose=0, validation_data=(X, Y))
    return model


def test_a_model_is_freed_once_its_training_has_ended():
    run = ScriptObserver()
    try:
        models = [weakref.ref(trained()) for _ in range(3)]
        keras.backend.clear_session()
        gc.collect()
        assert [model() for model in models] == [None] * 3
        assert len(run.watched()) == 3
        assert all(report.history.steps.total_steps for report in run.watched())
    finally:
        run.close()
    assert run.faults == []
