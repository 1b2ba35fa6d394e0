"""Failures of which a value in the frames decides: it is in the first three lines of the one finding."""

import ast
import os
import textwrap
from collections import UserDict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import diagnostics
from diagnostics.collectors.crash.live.cause import proof_of
from diagnostics.collectors.crash.live.expression import Expression
from diagnostics.collectors.crash.live.values import (
    attribute_of,
    described,
    is_telling,
    item_of,
    keys_of,
    length_of,
)
from tests.support.crashes import failure, printed

pytestmark = pytest.mark.filterwarnings("ignore")


class Environment:
    """An environment as Gymnasium has it."""

    def reset(self):
        return np.zeros(4, dtype=np.float32), {}


class MaskedAttention(nn.Module):
    """Its mask stays where it was made."""

    def __init__(self, length=4):
        super().__init__()
        self.projection = nn.Linear(length, length)
        self.mask = torch.tril(torch.ones(length, length))

    def forward(self, x):
        return F.mse_loss(self.projection(x), self.mask[:4, :4])


class Output:
    """A model's output without labels."""

    def __init__(self):
        self.loss, self.logits = None, torch.zeros(2)


class Batch(UserDict):
    """A batch as tokenizers return it."""


def fewer_queries_than_targets():
    queries, targets = torch.zeros(100, 4), torch.zeros(120, 4)
    cost = torch.cdist(queries, targets)
    return cost.min(1).values.topk(len(targets))


def an_empty_list():
    image_paths = sorted(Path("/nonexistent").glob("*.png"))
    return os.path.split(image_paths[0])[1]


def a_mask_as_a_plain_attribute():
    MaskedAttention().to("meta")(torch.zeros(4, 4, device="meta"))


def the_tuple_from_reset():
    env = Environment()
    state = env.reset()
    return torch.tensor(state, dtype=torch.float32)


def the_tuple_from_reset_as_an_array():
    env = Environment()
    state = env.reset()
    return state.reshape(1, -1)


def four_channels_in_a_convolution():
    return nn.Sequential(nn.Conv2d(3, 8, 3))(torch.zeros(1, 4, 32, 32))


def four_channels_normalized_by_three():
    image, mean = torch.zeros(4, 32, 32), torch.zeros(3, 1, 1)
    return (image - mean) / 2


def another_key():
    batch = {"input_ids": [1], "labels": [2]}
    return batch["label"]


def another_key_of_a_batch():
    batch = Batch(input_ids=[1], attention_mask=[1])
    return batch["token_type_ids"]


def a_column_in_other_capitals():
    pandas = pytest.importorskip("pandas")
    df = pandas.DataFrame({"Text": ["a"], "Label": [1]})
    return df["label"]


def no_loss_without_labels():
    outputs = Output()
    return outputs.loss.backward()


def a_list_moved_to_a_device():
    batch = [torch.zeros(3), torch.zeros(3)]
    return batch.to("cpu")


def a_label_behind_the_last_weight():
    weights, labels = torch.ones(5), torch.tensor([0, 7, 2])
    return weights[labels]


def a_dict_taken_apart():
    batch = {"image": torch.zeros(2), "label": 1, "path": "a.png"}
    images, labels = batch
    return images, labels


def nothing_counted():
    loader = [x for x in range(3) if x > 5]
    return 1.5 / len(loader)


def a_width_that_no_head_divides():
    width, heads = 100, 8
    return nn.MultiheadAttention(width, heads)


def a_loop_over_nothing():
    loader = []
    for batch in loader:
        loss = batch.sum()
    return loss.item()


def an_optional_layer():
    block = nn.Linear(3, 3)
    block.norm = None
    return block.norm(torch.zeros(3))


def nothing_to_join():
    features = []
    return torch.cat(features)


def rows_of_other_lengths():
    rows = [np.zeros(3), np.zeros(4)]
    return np.stack(rows)


def a_rate_read_as_text():
    config = {"lr": "1e-3"}
    return torch.optim.Adam(nn.Linear(2, 2).parameters(), lr=config["lr"])


def a_setting_that_was_not_given():
    args = SimpleNamespace(epochs=None)
    return range(args.epochs)


def an_attribute_behind_a_wrapper():
    net = nn.Linear(2, 2)
    net.config = {"hidden_size": 2}
    model = nn.DataParallel(net)
    return model.config


def a_cost_that_is_not_finite():
    optimize = pytest.importorskip("scipy.optimize")
    cost = np.full((3, 4), np.nan)
    return optimize.linear_sum_assignment(cost)


def several_losses_as_one_number():
    loss = torch.zeros(32)
    return loss.item()


def a_list_asked_by_name():
    batch = ["a", "b"]
    return batch["input_ids"]


def a_tensor_called():
    accuracy = torch.zeros(())
    return accuracy()


def the_tuple_of_a_recurrent_layer():
    out = nn.LSTM(4, 8)(torch.zeros(5, 2, 4))
    return nn.Linear(8, 1)(out)


def a_number_of_steps_with_a_fraction():
    steps = 100 / 8
    return list(range(steps))


def a_module_called():
    loss = F
    return loss(torch.zeros(1))


CASES = [
    (fewer_queries_than_targets, "refused-call", "tensor of shape (100, 120) and len(targets) is 120"),
    (an_empty_list, "mismatched-call", "image_paths is an empty list"),
    (a_mask_as_a_plain_attribute, "device-mismatch", "self.mask is a float32 tensor of shape (4, 4) on cpu"),
    (the_tuple_from_reset, "mismatched-call", "env.reset(), on line"),
    (
        the_tuple_from_reset_as_an_array,
        "mismatched-call",
        "state is a tuple of 2 (a float32 array of shape (4,)",
    ),
    (four_channels_in_a_convolution, "shape-mismatch", "shape (1, 4, 32, 32), with size 4 along axis 1"),
    (four_channels_normalized_by_three, "shape-mismatch", "image (4, 32, 32) and mean (3, 1, 1)"),
    (another_key, "mismatched-call", "it is a dict with the keys 'input_ids', 'labels'"),
    (another_key_of_a_batch, "mismatched-call", "a Batch with the keys 'input_ids', 'attention_mask'"),
    (a_column_in_other_capitals, "mismatched-call", "The closest is 'Label'"),
    (no_loss_without_labels, "mismatched-call", "outputs.loss is None"),
    (a_list_moved_to_a_device, "mismatched-call", "batch is a list of 2"),
    (a_label_behind_the_last_weight, "shape-mismatch", "with values from 0 to 7"),
    (a_dict_taken_apart, "mismatched-call", "a dict with the keys 'image', 'label', 'path'"),
    (nothing_counted, "mismatched-call", "len(loader) is 0: loader is an empty list"),
    (a_width_that_no_head_divides, "unusable-setting", "width is 100 and heads is 8"),
    (a_loop_over_nothing, "mismatched-call", "loader is an empty list"),
    (an_optional_layer, "mismatched-call", "block.norm is None"),
    (nothing_to_join, "emptied-dataset", "features is an empty list"),
    (rows_of_other_lengths, "refused-call", "a float64 array of shape (3,); a float64 array of shape (4,)"),
    (a_rate_read_as_text, "mismatched-call", "config['lr'] is the string '1e-3'"),
    (a_setting_that_was_not_given, "mismatched-call", "args.epochs is None"),
    (an_attribute_behind_a_wrapper, "mismatched-call", "model.module is a Linear and has one"),
    (a_cost_that_is_not_finite, "non-finite-inputs", "cost is a float64 array of shape (3, 4) with 12 of 12"),
    (several_losses_as_one_number, "mismatched-call", "loss is a float32 tensor of shape (32,)"),
    (a_list_asked_by_name, "mismatched-call", "batch is a list of 2 (the string 'a'; the string 'b')"),
    (the_tuple_of_a_recurrent_layer, "mismatched-call", "returns 2 values, and out holds them all"),
    (a_number_of_steps_with_a_fraction, "mismatched-call", "steps is 12.5, a float"),
    (a_module_called, "mismatched-call", "loss is the module torch.nn.functional"),
    (a_tensor_called, "mismatched-call", "accuracy is a float32 tensor of shape ()"),
]


@pytest.mark.parametrize(("run", "rule", "deciding"), CASES, ids=[run.__name__ for run, *_ in CASES])
def test_the_deciding_value_comes_first(run, rule, deciding):
    report = diagnostics.explain(failure(run))
    (finding,) = report.findings
    assert (finding.rule, report.faults) == (rule, ())
    assert deciding in " ".join(textwrap.wrap(finding.message, 98)[:3])
    assert finding.where.function in (run.__name__, "forward")


def test_the_fix_names_both_values_of_reset():
    (finding,) = diagnostics.explain(failure(the_tuple_from_reset)).findings
    assert finding.fix == "observation, info = env.reset()"


def test_the_mask_becomes_a_buffer():
    (finding,) = diagnostics.explain(failure(a_mask_as_a_plain_attribute)).findings
    assert 'self.register_buffer("mask", ..., persistent=False)' in finding.fix


def test_a_text_claims_no_values():
    """A text has no frames to read."""
    for run in (fewer_queries_than_targets, a_label_behind_the_last_weight):
        report = diagnostics.explain(printed(failure(run)))
        said = [report.crash.nature or "", *(finding.message for finding in report.findings)]
        assert not any(" of shape (" in text for text in said)


def test_the_users_own_check_shows_what_it_compared():
    def read():
        files = []
        if len(files) < 2:
            raise ValueError("too little data")

    report = diagnostics.explain(failure(read))
    assert report.findings == ()
    assert "because len(files) < 2 holds: len(files) is 0." in report.crash.nature


def test_a_mask_that_is_a_buffer_is_not_accused():
    class Buffered(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.ones(4, 4))

        def forward(self, x):
            return F.mse_loss(x, self.mask)

    (finding,) = diagnostics.explain(failure(lambda: Buffered()(torch.zeros(4, 4, device="meta")))).findings
    assert "plain attribute" not in finding.message


class Hostile:
    """Whatever is asked of it is noted."""

    asked = []

    def note(self, *given, **named):
        Hostile.asked.append(given)
        raise SystemError("code of the user's ran")

    __repr__ = __str__ = __len__ = __iter__ = __getitem__ = __bool__ = __eq__ = __format__ = note
    __hash__ = None
    shape = dtype = device = __class__ = property(note)

    def __getattr__(self, name):
        return self.note(name)


class HostileList(list):
    """A list with code of its own."""

    __repr__ = __len__ = __iter__ = __getitem__ = Hostile.note


@pytest.mark.parametrize(
    "make",
    [Hostile, lambda: HostileList([1]), lambda: [Hostile()], lambda: {"a": Hostile()}, lambda: (Hostile(), 1)],
    ids=["object", "list", "in a list", "in a dict", "in a tuple"],
)
def test_no_code_of_the_users_runs(make):
    value = make()
    Hostile.asked.clear()
    assert described(value)
    is_telling(value), keys_of(value), length_of(value), item_of(value, 0), attribute_of(value, "shape")
    assert proof_of(IndexError, "", Expression(NODE, (NODE,), {"value": value}), in_library=False) is None
    assert Hostile.asked == []


NODE = ast.parse("value.shape[value[0]] + len(value)", mode="eval").body
