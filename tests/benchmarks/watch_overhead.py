"""What a training step costs while it is watched, against a bare one and against what people use today.

$ python tests/benchmarks/watch_overhead.py
"""

import gc
import os
import statistics
import sys
import time
import warnings

import torch
import transformers
from torch import nn
from transformers.debug_utils import DebugUnderflowOverflow

import diagnostics

VOCABULARY = 1000


def mlp():
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    inputs, labels = torch.randn(32, 16), torch.randint(4, (32,))
    return model, lambda: nn.functional.cross_entropy(model(inputs), labels)


def cnn():
    layers = []
    for channels_in, channels_out in ((3, 32), (32, 64), (64, 64)):
        layers += [
            nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels_out),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    inputs, labels = torch.randn(32, 3, 32, 32), torch.randint(10, (32,))
    return model, lambda: nn.functional.cross_entropy(model(inputs), labels)


def distilbert(dim=256, layers=4):
    config = transformers.DistilBertConfig(
        vocab_size=VOCABULARY, dim=dim, hidden_dim=4 * dim, n_layers=layers, n_heads=4, num_labels=3
    )
    model = transformers.DistilBertForSequenceClassification(config)
    batch = {
        "input_ids": torch.randint(VOCABULARY, (16, 64)),
        "attention_mask": torch.ones(16, 64, dtype=torch.long),
        "labels": torch.randint(3, (16,)),
    }
    return model, lambda: model(**batch).loss


def distilbert_512():
    return distilbert(512, 6)


# model, rounds of all ways in turn, steps in each, and the most that `watch` may cost
TASKS = ((mlp, 40, 60, 1.30), (cnn, 25, 4, 1.10), (distilbert, 15, 1, 1.03), (distilbert_512, 9, 1, 1.05))


def loop(build, way):
    """Return a function that takes one training step, and whatever must stay alive for it."""
    torch.manual_seed(0)
    model, loss_of = build()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    watch = diagnostics.watch(model, optimizer) if way == "watch" else None
    detector = DebugUnderflowOverflow(model, max_frames_to_save=4) if way == "DebugUnderflowOverflow" else None

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        if watch is not None:
            watch.step(loss)

    def step_with_anomalies_detected():
        with torch.autograd.detect_anomaly(check_nan=True):
            step()

    return (step_with_anomalies_detected if way == "detect_anomaly" else step), (watch, detector)


def measure(build, rounds, steps):
    """Return seconds by way, each a list over rounds of the time of one step."""
    ways = ("bare", "watch", "DebugUnderflowOverflow", "detect_anomaly")
    loops = {way: loop(build, way) for way in ways}
    times = {way: [] for way in ways}
    for turn in range(rounds + 2):
        for way in ways if turn % 2 else ways[::-1]:
            step = loops[way][0]
            started = time.perf_counter()
            for _ in range(steps):
                step()
            if turn >= 2:  # the first two warm up
                times[way].append((time.perf_counter() - started) / steps)
    assert loops["watch"][1][0].report().faults == ()
    return times


KERAS_BOUND = 1.05  # as for the transformers of PyTorch; the steps are of a model of the same size
KERAS_ROUNDS, KERAS_STEPS = 15, 2


def keras_step(watched):
    """Return a function that takes one step as `fit` does, and the callback, if there is to be one."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    hidden = ids = keras.layers.Input((64,), dtype="int32")
    hidden = keras.layers.Embedding(VOCABULARY, 256)(hidden)
    for _ in range(4):
        seen = keras.layers.MultiHeadAttention(4, 64)(hidden, hidden)
        hidden = keras.layers.LayerNormalization()(hidden + seen)
        told = keras.layers.Dense(256)(keras.layers.Dense(1024, activation="gelu")(hidden))
        hidden = keras.layers.LayerNormalization()(hidden + told)
    model = keras.Model(ids, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling1D()(hidden)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-4), loss, jit_compile=False)  # XLA's compilation would hide the rest
    rng = np.random.default_rng(0)
    rows = rng.integers(VOCABULARY, size=(256, 64)), rng.integers(3, size=256)
    batches = iter(tf.data.Dataset.from_tensor_slices(rows).repeat().batch(16, drop_remainder=True).prefetch(2))
    model.make_train_function()
    callback = diagnostics.KerasCallback(quiet=True) if watched else None
    if callback is not None:
        callback.set_model(model)
        callback.on_train_begin()
    return lambda: float(model.train_function(batches)["loss"]), callback


def measure_keras():
    """Return seconds by way, as `measure` does."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    steps = {"bare": keras_step(False), "watch": keras_step(True)}
    times = {way: [] for way in steps}
    for turn in range(KERAS_ROUNDS + 2):
        for way in list(steps)[:: 1 if turn % 2 else -1]:
            started = time.perf_counter()
            for _ in range(KERAS_STEPS):
                steps[way][0]()
            if turn >= 2:
                times[way].append((time.perf_counter() - started) / KERAS_STEPS)
    assert steps["watch"][1].report().faults == ()
    return times


def ratios(taken, bare):
    """Return what each round took, as a multiple of the bare steps beside it."""
    return [a / b for a, b in zip(taken, bare, strict=True)]


def spread(pairs):
    """Say where the middle half of the rounds lies."""
    low, _, high = statistics.quantiles(pairs, n=4)
    return f"half of {len(pairs)} rounds from {low:.3f} to {high:.3f}"


def main():
    warnings.filterwarnings("ignore", message="Anomaly Detection")
    torch.set_num_threads(1)
    gc.disable()
    held = True
    for build, rounds, steps, bound in TASKS:
        times = measure(build, rounds, steps)
        # Within each round, side by side; the median over rounds leaves out those that were disturbed.
        pairs = {way: ratios(taken, times["bare"]) for way, taken in times.items()}
        ratio = {way: statistics.median(values) for way, values in pairs.items()}
        bare = statistics.median(times["bare"])
        others = ", ".join(f"{way} {value:.2f}" for way, value in ratio.items() if way not in ("bare", "watch"))
        print(
            f"{build.__name__}: watch / bare = {ratio['watch']:.3f} (at most {bound}), {spread(pairs['watch'])}; "
            f"{others}; a bare step takes {bare * 1e3:.2f} ms"
        )
        held = held and ratio["watch"] <= bound
        gc.collect()
    times = measure_keras()
    pairs = ratios(times["watch"], times["bare"])
    ratio = statistics.median(pairs)
    bare = statistics.median(times["bare"])
    print(
        f"a transformer in Keras: KerasCallback / bare = {ratio:.3f} (at most {KERAS_BOUND}), {spread(pairs)}; "
        f"a bare step takes {bare * 1e3:.2f} ms"
    )
    return 0 if held and ratio <= KERAS_BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
