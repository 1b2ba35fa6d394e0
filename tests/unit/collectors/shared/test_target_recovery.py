import numpy as np
import pytest

from diagnostics.collectors.shared.target_recovery import FORMULAS, leaves_out, recovered, recovered_classes

RNG = np.random.default_rng(0)


def softmax(values):
    shares = np.exp(values - values.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def test_squared_error_gives_its_targets_back():
    output, target = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 3))
    found = recovered(output, 2 * (output - target) / output.size)["squared"]
    np.testing.assert_allclose(found.targets, target)
    assert found.loss == pytest.approx(np.square(output - target).mean())


def test_cross_entropy_of_logits_gives_soft_labels_back():
    output, target = RNG.normal(size=(8, 3)), softmax(RNG.normal(size=(8, 3)))
    found = recovered(output, (softmax(output) - target) / len(output))["softmax"]
    np.testing.assert_allclose(found.targets, target)
    assert found.loss == pytest.approx(-(target * np.log(softmax(output))).sum(axis=1).mean())


@pytest.mark.parametrize("name", ["log_probabilities", "shares"])
def test_cross_entropy_of_probabilities_gives_labels_back(name):
    target, shares = np.eye(3)[RNG.integers(0, 3, 8)], softmax(RNG.normal(size=(8, 3)))
    output = np.log(shares) if name == "log_probabilities" else shares
    gradient = -target / len(target) / (1 if name == "log_probabilities" else shares)
    found = recovered(output, gradient)[name]
    np.testing.assert_allclose(found.targets, target)
    assert found.loss == pytest.approx(-np.log(shares[target == 1]).mean())


@pytest.mark.parametrize("name", ["logits", "probabilities"])
def test_binary_cross_entropy_gives_its_targets_back(name):
    logits, target = RNG.normal(size=(8, 1)), RNG.integers(0, 2, (8, 1)).astype(float)
    share = 1 / (1 + np.exp(-logits))
    output = logits if name == "logits" else share
    gradient = (share - target) / 8 / (1 if name == "logits" else share * (1 - share))
    found = recovered(output, gradient)[name]
    np.testing.assert_allclose(found.targets, target, atol=1e-9)
    assert found.loss == pytest.approx(-np.log(np.where(target == 1, share, 1 - share)).mean())


def test_a_pass_without_gradient_says_nothing():
    assert recovered(RNG.normal(size=(4, 2)), np.zeros((4, 2))) == {}


def test_a_constant_answer_costs_variance_or_entropy():
    targets = RNG.normal(size=(500, 2))
    mean, square = targets.mean(axis=0), float(np.square(targets).mean())
    assert FORMULAS["squared"].constant(mean, mean, square) == pytest.approx(targets.var(axis=0).mean())
    shares = np.array([0.25, 0.75])
    assert FORMULAS["softmax"].constant(shares, shares, 0.0) == pytest.approx(-(shares * np.log(shares)).sum())
    assert FORMULAS["logits"].constant(shares[:1], shares[:1], 0.0) == pytest.approx(
        -(shares * np.log(shares)).sum()
    )


def test_rows_that_the_loss_leaves_out_are_no_rows_with_a_certain_answer():
    output, target = RNG.normal(size=(8, 3)), np.eye(3)[RNG.integers(0, 3, 8)]
    gradient = (softmax(output) - target) / 6
    gradient[:2] = 0  # as by ignore_index
    assert leaves_out(output, gradient)
    found = recovered_classes(output, gradient)["softmax"]
    np.testing.assert_allclose(found.targets, target[2:], atol=1e-12)
    output = np.where(target == 1, 1000.0, -1000.0)
    assert not leaves_out(output, (softmax(output) - target) / 8)
