"""What a script really trains and evaluates is seen in both frameworks, whatever it prints."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

KERAS = """
import json
from bugs.zoo.learner.checking.observation import Observation
seen = Observation()
seen.begin()

import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, numpy as np, tensorflow as tf

keras.utils.set_random_seed(0)
ids = np.random.default_rng(0).integers(1, 1000, (40, 6))
rows = tf.data.Dataset.from_tensor_slices(({"token_ids": ids, "padding_mask": ids > 0}, ids[:, 0] % 2))
inputs = {"token_ids": keras.Input((6,)), "padding_mask": keras.Input((6,), dtype="bool")}
model = keras.Model(inputs, keras.layers.Dense(2)(inputs["token_ids"]))
model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(rows.take(32).shuffle(32).batch(8), epochs=3, verbose=0)
model.evaluate(rows.skip(32).batch(8), verbose=0)
"""
TORCH = """
import json
from bugs.zoo.learner.checking.observation import Observation
seen = Observation()
seen.begin()

import torch

torch.manual_seed(0)
rows = torch.randn(40, 6)
encoder, head = torch.nn.Linear(6, 4), torch.nn.Linear(4, 2)
one = torch.optim.SGD(encoder.parameters(), 0.1)
other = torch.optim.SGD([*encoder.parameters(), *head.parameters()], 0.1)
loss_fn = torch.nn.CrossEntropyLoss()
for epoch in range(3):
    for start in range(0, 32, 8):
        x = rows[start : start + 8]
        loss = loss_fn(head(encoder(x)), (x[:, 0] > 0).long())
        loss.backward()
        one.step() if epoch else other.step()
with torch.no_grad():
    encoder(rows[32:])
"""
CHECKPOINTED = TORCH.replace("encoder(x)", "torch.utils.checkpoint.checkpoint(encoder, x, use_reentrant=False)")
END = """
seen.end()
weights = seen.weights()
facts = [seen.updates, seen.models, len(seen.trained.digests), seen.trained.count, len(seen.evaluated.digests)]
shapes = [list(weight.shape) for weight in weights.values()]
print(json.dumps([facts, seen.evaluated.share_in(seen.trained.digests), seen.whole, shapes]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "facts", "shapes"),
    [
        (KERAS, [12, 1, 32, 32, 8], [[6, 2], [2]]),
        # A part of a model that is called by itself is no model of its own.
        pytest.param(TORCH, [12, 1, 32, 96, 8], [[4, 6], [4]], marks=pytest.mark.exhaustive),
        pytest.param(CHECKPOINTED, [12, 1, 32, 96, 8], [[4, 6], [4]], marks=pytest.mark.exhaustive),
    ],
    ids=["keras", "torch", "checkpointed"],
)
def test_updates_models_and_rows(script: str, facts: list[int], shapes: list[list[int]]) -> None:
    done = subprocess.run([sys.executable, "-c", script + END], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [facts, 0.0, True, shapes]
