"""Runs one check of a trained Keras model by itself."""

from __future__ import annotations

from types import SimpleNamespace

from diagnostics.collectors.keras.dependence.subject import KerasSubject, keep_batch
from diagnostics.collectors.keras.post_run import TrainedModel


def checked(kind, model, x, y=None, train=lambda: None, of=object, **kept):
    """Return the first fact of a check and a kind; `kept`: attributes of the pipeline that examined the model."""
    trained = TrainedModel()
    check = kind(trained)
    check.on_examined(model, SimpleNamespace(**kept))
    train()
    trained.model = model
    trained.asked = KerasSubject(model, keep_batch(x, y, None))
    return next((fact for fact in check.facts() if isinstance(fact, of) and fact is not None), None)
