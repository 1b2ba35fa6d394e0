"""Fits a small classifier on Keras' PyTorch backend, alone and looked at; prints what came of it as JSON.

Run by itself, since a process has one backend: ``KERAS_BACKEND=torch python -m tests.keras.run.on_torch``.
"""

import json
import random
import sys
import warnings

from diagnostics.run.observer import ScriptObserver

ROWS, FEATURES, CLASSES = 320, 12, 3


def data(labels_from=0, broken_row=None):
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES)).astype("float32")
    y = (x @ rng.normal(size=(FEATURES, CLASSES))).argmax(1) + labels_from
    if broken_row is not None:
        x[broken_row, 3] = np.nan
    return x, y


def batches(reads):
    x, y = data()
    for start in range(0, ROWS, 32):
        reads.append(start)
        yield x[start : start + 32], y[start : start + 32]


def classifier(last=None):
    import keras

    model = keras.Sequential(
        [keras.layers.Dense(32, "relu"), keras.layers.Dropout(0.2), keras.layers.Dense(CLASSES, last)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-2), loss, metrics=["accuracy"])
    return model


def linear(rate):
    import keras

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse")
    return model


def fit(rate=None, last=None, generator=False, **changes):
    import keras
    import numpy as np
    import torch

    keras.utils.set_random_seed(3)
    model = classifier(last) if rate is None else linear(rate)
    reads, failed = [], None
    try:
        given = (batches(reads),) if generator else data(**changes)
        history = model.fit(*given, epochs=1 if generator else 5, verbose=0).history
    except Exception as error:
        history, failed = {}, f"{type(error).__name__}: {error}"
    return {
        "history": repr(history),  # NaN is not equal to NaN
        "failed": failed,
        "reads": reads,
        "weights": [weight.tobytes().hex() for weight in model.get_weights()],
        "random": [random.random(), np.random.rand(), float(torch.rand(()))],
        "attributes": sorted(name for name in vars(model) if name not in ("_tracker", "history")),
    }


CASES = {
    "healthy": {},
    "generator": {"generator": True},
    "labels": {"labels_from": 1},
    "nan": {"broken_row": 200},
    "rate": {"rate": 1.5},
    "softmax": {"last": "softmax"},
}


def looked_at(changes):
    run = ScriptObserver()
    try:
        noticed = fit(**changes)
    finally:
        run.close()
    (training,) = run.trainings
    reports = [training.examined, run.course(training)]
    return noticed, {
        "faults": [*run.faults, *(fault for report in reports for fault in report.faults)],
        "rules": sorted({finding.rule for report in reports for finding in report.findings}),
        "messages": [finding.message for report in reports for finding in report.findings],
        "stages": {stage.name: (stage.status, stage.detail) for report in reports for stage in report.stages},
    }


def main():
    warnings.simplefilter("ignore")
    results = {}
    for name, changes in CASES.items():
        plain = fit(**changes)
        noticed, told = looked_at(changes)
        results[name] = {"different": [key for key in plain if plain[key] != noticed[key]], **told}
    ours = [name for name in sys.modules if name.startswith("diagnostics.") and "keras" in name]
    print(json.dumps({"cases": results, "modules": ours}))


if __name__ == "__main__":
    main()
