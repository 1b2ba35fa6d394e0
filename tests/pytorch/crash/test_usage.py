"""Failures of PyTorch, raised for real: the exception and its traceback's text give the same rule."""

import traceback

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import diagnostics


class Net(nn.Module):
    def __init__(self, outputs=2):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, outputs)

    def forward(self, inputs):
        return self.head(self.body(inputs))


def double_features():
    Net()(torch.ones(4, 3, dtype=torch.float64))


def double_images():
    nn.Conv2d(1, 1, 3)(torch.ones(1, 1, 5, 5, dtype=torch.float64))


def double_sequence():
    nn.LSTM(3, 2)(torch.ones(4, 1, 3, dtype=torch.float64))


def float_ids():
    nn.Embedding(5, 2)(torch.ones(3))


def float_classes():
    functional.cross_entropy(torch.randn(4, 3), torch.ones(4))


def integer_target():
    functional.binary_cross_entropy_with_logits(torch.rand(4), torch.ones(4, dtype=torch.long))


def mean_of_integers():
    torch.ones(3, dtype=torch.long).mean()


def backward_twice():
    loss = Net()(torch.ones(4, 3)).pow(2).sum()
    loss.backward()
    loss.backward()


def activation_in_place():
    outputs = torch.sigmoid(Net()(torch.ones(4, 3)))
    outputs += 1
    outputs.sum().backward()


def step_before_backward():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss = model(torch.ones(4, 3)).pow(2).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    loss.backward()


def parameter_in_place():
    weight = torch.ones(3, requires_grad=True)
    weight += 1


def loss_of_each_example():
    functional.mse_loss(Net()(torch.ones(4, 3)), torch.zeros(4, 2), reduction="none").backward()


def numpy_with_a_graph():
    Net()(torch.ones(4, 3)).numpy()


def saved_from_data_parallel():
    Net().load_state_dict({f"module.{key}": value for key, value in Net().state_dict().items()})


def whole_checkpoint():
    Net().load_state_dict({"state_dict": Net().state_dict(), "epoch": 3})


def optimizer_of_another_model():
    state = torch.optim.Adam(Net().parameters()).state_dict()
    torch.optim.Adam(nn.Linear(3, 2).parameters()).load_state_dict(state)


def one_example():
    nn.BatchNorm1d(3)(torch.ones(1, 3))


def half_parameters():
    scaler, model = torch.amp.GradScaler("cpu"), nn.Linear(3, 2).half()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler.scale(model(torch.ones(2, 3).half()).float().sum()).backward()
    scaler.unscale_(optimizer)


def empty_list():
    DataLoader([], shuffle=True)


def class_beyond_the_classes():
    functional.one_hot(torch.tensor([5]), 3)


def classes_as_floats():
    functional.one_hot(torch.tensor([1.0]), 3)


def mask_of_bytes():
    functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([255.0]))


def mask_beyond_half():
    torch.zeros(2, dtype=torch.half).masked_fill_(torch.tensor([True, False]), -1e9)


def label_that_is_none():
    torch.tensor([1, None])


def flipped_array():
    torch.from_numpy(np.zeros((3, 3))[::-1])


def weights_of_zero():
    torch.multinomial(torch.zeros(3), 1)


def no_positive_matrix():
    torch.linalg.cholesky(-torch.eye(2))


def predictions_for_other_rows():
    accuracy_score([0, 1], [0, 1, 1])


FAILURES = {
    double_features: "dtype-mismatch",
    double_images: "dtype-mismatch",
    double_sequence: "dtype-mismatch",
    float_ids: "dtype-mismatch",
    float_classes: "dtype-mismatch",
    integer_target: "dtype-mismatch",
    mean_of_integers: "dtype-mismatch",
    backward_twice: "graph-misuse",
    activation_in_place: "graph-misuse",
    step_before_backward: "graph-misuse",
    parameter_in_place: "graph-misuse",
    loss_of_each_example: "graph-misuse",
    numpy_with_a_graph: "graph-misuse",
    saved_from_data_parallel: "checkpoint-keys-mismatch",
    whole_checkpoint: "checkpoint-keys-mismatch",
    optimizer_of_another_model: "checkpoint-keys-mismatch",
    one_example: "batch-of-one",
    half_parameters: "mixed-precision-misuse",
    empty_list: "emptied-dataset",
    class_beyond_the_classes: "labels-out-of-range",
    classes_as_floats: "dtype-mismatch",
    mask_of_bytes: "labels-out-of-range",
    mask_beyond_half: "half-precision-overflow",
    label_that_is_none: "unbatchable-example",
    flipped_array: "unbatchable-example",
    weights_of_zero: "refused-call",
    no_positive_matrix: "non-finite-activations",
    predictions_for_other_rows: "shape-mismatch",
}


@pytest.mark.parametrize(("fail", "rule"), FAILURES.items(), ids=lambda case: getattr(case, "__name__", ""))
def test_exception_and_text_give_the_same_rule(fail, rule):
    with pytest.raises((RuntimeError, ValueError)) as raised:
        fail()
    live = diagnostics.explain(raised.value)
    pasted = diagnostics.explain("".join(traceback.format_exception(raised.value)))
    assert [finding.rule for finding in live.findings] == [rule]
    assert [finding.rule for finding in pasted.findings] == [rule]
    assert live.findings[0].where is not None


def test_frames_name_the_tensors_of_each_dtype():
    with pytest.raises(RuntimeError) as raised:
        double_features()
    (finding,) = diagnostics.explain(raised.value).findings
    assert finding.evidence["tensors"] == {
        "input": "float64",
        "self.weight": "float32",
        "self.bias": "float32",
    }


def test_the_optimizers_change_of_a_weight_is_told_from_one_in_place():
    said = []
    for fail in (step_before_backward, activation_in_place):
        with pytest.raises(RuntimeError) as raised:
            fail()
        said.append(diagnostics.explain(raised.value).findings[0].message)
    assert "most likely by optimizer.step()" in said[0]
    assert "the output of Sigmoid" in said[1]
