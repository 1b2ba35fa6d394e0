"""`Reading`: which code is trusted to be called beside a training."""

import collections
import dataclasses
import functools
import itertools
import logging
import types

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score
from torch import nn
from transformers import default_data_collator
from transformers.modeling_outputs import SequenceClassifierOutput

from diagnostics.collectors.isolation.harmless_code import Reading, objection_to_module

WEIGHT = torch.tensor([1.0, 3.0])
NAMES = ["no", "yes"]
COUNTS = {"calls": 0}
TALLY = collections.Counter()
SEEN = []
NUMBERS = itertools.count()
NOTED = types.SimpleNamespace(calls=0)
logger = logging.getLogger(__name__)
remember = SEEN.append
LOSS = nn.CrossEntropyLoss()


class Meter:
    calls = 0

    def update(self, value):
        self.calls += value


METER = Meter()


@dataclasses.dataclass
class Answer:
    loss: object
    logits: object


def helper(logits):
    return np.argmax(logits, axis=-1)


def metric_with_a_helper(prediction):
    logits, labels = prediction
    scores = {}
    scores["accuracy"] = float(accuracy_score(labels, helper(logits)))
    scores.update(share=float((labels == 1).mean()))
    return scores


def names_a_class(prediction):
    return {f"{NAMES[1]}_share": float((prediction.predictions > 0).mean())}


def weighted(outputs, labels, num_items_in_batch=None):
    return nn.functional.cross_entropy(outputs.logits, labels, weight=WEIGHT)


def with_a_module(outputs, labels, num_items_in_batch=None):
    return LOSS(outputs.logits, labels)


def stacked(rows):
    batch = {"inputs": torch.stack([row["inputs"] for row in rows])}
    batch["labels"] = torch.tensor([row["labels"] for row in rows])
    return batch


def of_ten(width):
    def collate(rows):
        return default_data_collator([row for row in rows if len(row) <= width])

    return collate


HARMLESS = [
    metric_with_a_helper, names_a_class, weighted, with_a_module, stacked, of_ten(10), default_data_collator,
    functools.partial(weighted, num_items_in_batch=3), lambda rows: torch.stack(rows).log().sum(),
]  # fmt: skip


@pytest.mark.parametrize("function", HARMLESS, ids=lambda f: getattr(f, "__name__", type(f).__name__))
def test_code_that_only_computes_is_trusted(function):
    assert Reading().objection(function, "it") is None


def counts_in_a_dict(rows):
    COUNTS["calls"] += 1


def counts_in_a_counter(rows):
    TALLY.update(rows)


def collects(rows):
    SEEN.append(rows)


def collects_under_another_name(rows):
    remember(rows)


def counts_in_a_global(rows):
    global WEIGHT
    WEIGHT = WEIGHT + 1


def in_place(rows):
    WEIGHT.mul_(2.0)


def moves_on(rows):
    return next(NUMBERS)


def notes(rows):
    NOTED.calls += 1


def uses_an_object(rows):
    METER.update(1)


def counts_in_a_class(rows):
    Meter.calls += 1


def prints(rows):
    print(len(rows))


def logs(rows):
    logger.info("rows")


def writes(rows):
    np.save("rows.npy", rows)


def imports(rows):
    import subprocess

    subprocess.run(["true"], check=False)


def through_a_helper(rows):
    return [counts_in_a_dict([row]) for row in rows]


def in_a_closure():
    calls = 0

    def collate(rows):
        nonlocal calls
        calls += 1

    return collate


def by_default(rows, seen=[]):  # noqa: B006
    seen.append(rows)


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, rows):
        self.calls += 1


NOTICED = [
    counts_in_a_dict, counts_in_a_counter, collects, collects_under_another_name, counts_in_a_global, in_place,
    moves_on, notes, uses_an_object, counts_in_a_class, prints, logs, writes, imports, through_a_helper,
    in_a_closure(), by_default, Counting(), functools.partial(collects),
]  # fmt: skip


@pytest.mark.parametrize("function", NOTICED, ids=lambda f: getattr(f, "__name__", type(f).__name__))
def test_code_that_might_be_noticed_is_not(function):
    assert Reading().objection(function, "it") is not None


def model_with(forward, **attributes):
    kind = type("Model", (nn.Module,), {"forward": forward, "calls": 0})
    model = kind()
    model.layer = nn.Linear(4, 2)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


class TestModels:
    """A deep copy is run, so what a model keeps in itself is nobody's."""

    def test_one_that_computes(self):
        def forward(self, inputs, labels=None):
            logits = self.layer(inputs) * self.scale
            loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
            return SequenceClassifierOutput(loss=loss, logits=logits)

        assert objection_to_module(model_with(forward, scale=2.0)) is None

    def test_one_that_counts_in_itself(self):
        def forward(self, inputs):
            self.calls += 1
            self.seen.append(len(inputs))
            return self.layer(inputs)

        assert objection_to_module(model_with(forward, seen=[])) is None

    def test_one_that_returns_an_object_of_its_own(self):
        assert objection_to_module(model_with(lambda self, x: Answer(None, self.layer(x)))) is None

    @pytest.mark.parametrize("count", [collects, counts_in_a_dict, prints], ids=lambda f: f.__name__)
    def test_one_that_calls_a_function_that_is_noticed(self, count):
        def forward(self, inputs):
            count(inputs)
            return self.layer(inputs)

        assert objection_to_module(model_with(forward)) is not None

    def test_one_that_counts_in_its_class(self):
        def forward(self, inputs):
            type(self).calls += 1
            return self.layer(inputs)

        assert objection_to_module(model_with(forward)) is not None

    def test_one_with_a_hook_that_counts(self):
        model = nn.Sequential(nn.Linear(4, 2))
        assert objection_to_module(model) is None
        model[0].register_forward_hook(lambda module, given, output: collects(output))
        assert objection_to_module(model) is not None

    def test_one_within_another(self):
        def forward(self, inputs):
            prints(inputs)
            return self.layer(inputs)

        assert objection_to_module(nn.Sequential(nn.ReLU(), model_with(forward))) is not None
