import io
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from diagnostics.facts.training import LabelWeightFacts
from tests.pytorch.watched import batch, mlp

SIZES = (4, 16, 8)


def accumulated(loss_of, steps=3, sizes=SIZES, before=lambda model, inputs: None):
    """Train, with a backward pass for each size, and return what was measured; None if nothing was."""
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watch = TorchWatcher(model, [optimizer], every=1)
    for step in range(steps):
        for part, size in enumerate(sizes):
            inputs, labels = batch(len(sizes) * step + part, size)
            before(model, inputs)
            loss_of(model(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        watch.step(None)
    watch.close()
    assert watch.faults == {}
    return next((fact for fact in watch.course() if isinstance(fact, LabelWeightFacts)), None)


def half_ignored(labels):
    return torch.where(torch.arange(len(labels)) % 2 == 0, labels, -100)


def masked_mean(output, labels):
    mask = torch.arange(len(labels)) < len(labels) // 2
    return (F.cross_entropy(output, labels, reduction="none") * mask).sum() / mask.sum() / 3


@pytest.mark.parametrize(
    ("loss_of", "counts", "weights"),
    [
        (lambda o, t: F.cross_entropy(o, t) / 3, SIZES, [1 / 12, 1 / 48, 1 / 24]),
        (lambda o, t: 2**14 * F.nll_loss(o.log_softmax(-1), t), SIZES, [2**12, 2**10, 2**11]),
        (lambda o, t: F.cross_entropy(o, t, reduction="sum") / 28, SIZES, [1 / 28] * 3),
        (lambda o, t: F.cross_entropy(o, half_ignored(t)) / 3, (2, 8, 4), [1 / 6, 1 / 24, 1 / 12]),
        (masked_mean, (2, 8, 4), [1 / 6, 1 / 24, 1 / 12]),
    ],
    ids=["mean", "scaled", "sum", "ignored labels", "mask"],
)
def test_measures_the_weight_of_a_label_from_the_second_sampled_step_on(loss_of, counts, weights):
    facts = accumulated(loss_of)
    assert facts.steps.tolist() == [1, 2]
    for of_step, weighed in zip(facts.counts, facts.weights, strict=True):
        assert of_step.tolist() == list(counts)
        assert np.allclose(weighed, weights)
    assert facts.where.file.endswith("test_label_weights.py")


def test_does_not_count_torch_autograd_grad():
    def attack(model, inputs):
        given = inputs.clone().requires_grad_()
        torch.autograd.grad(F.cross_entropy(model(given), torch.zeros(len(inputs), dtype=torch.long)), given)

    facts = accumulated(lambda o, t: F.cross_entropy(o, t) / 3, before=attack)
    assert [of_step.tolist() for of_step in facts.counts] == [list(SIZES)] * 2


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda o, t: F.cross_entropy(o, t) + F.cross_entropy(2 * o, t),
        lambda o, t: F.cross_entropy(o, t, weight=torch.ones(3)),
        lambda o, t: F.cross_entropy(o, F.one_hot(t, 3).float()),
        lambda o, t: (F.cross_entropy(o, t, reduction="none") * torch.arange(1.0, len(t) + 1)).mean(),
    ],
    ids=["two losses", "class weights", "shares", "weighed rows"],
)
def test_says_nothing_where_labels_of_a_pass_have_no_single_weight(loss_of):
    assert accumulated(loss_of) is None


def test_a_script_can_save_a_loss_without_a_warning_about_hooks():
    def saved(output, labels):
        loss = F.cross_entropy(output, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.save(loss, io.BytesIO())
        return loss / 3

    assert accumulated(saved) is not None


def test_says_nothing_of_a_loop_that_steps_after_each_batch():
    assert accumulated(F.cross_entropy, sizes=(16,)) is None
