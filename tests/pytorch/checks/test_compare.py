"""`compare`, on functions of PyTorch and NumPy as people write them."""

import random
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import diagnostics


def pairwise_loop(x, y):
    rows = [torch.stack([((a - b) ** 2).sum().sqrt() for b in y]) for a in x]
    return torch.stack(rows)


def attention_loop(q, k, v):
    out = []
    for row in range(q.shape[0]):
        scores = torch.stack([torch.stack([(a * b).sum() for b in k[row]]) for a in q[row]]) / q.shape[-1] ** 0.5
        out.append(
            torch.stack(
                [sum(w * value for w, value in zip(s.exp() / s.exp().sum(), v[row], strict=False)) for s in scores]
            )
        )
    return torch.stack(out)


def layer_norm_loop(x):
    return torch.stack([(row - row.mean()) / (row.var(unbiased=False) + 1e-5).sqrt() for row in x])


def per_row_loss_loop(logits, labels):
    return torch.stack([-logits[i].log_softmax(-1)[labels[i]] for i in range(len(labels))]).mean()


def windows_loop(x):
    return torch.stack([x[:, i : i + 2].sum(1) for i in range(x.shape[1] - 1)], dim=1)


def one_hot_loop(ids):
    out = torch.zeros(*ids.shape, 7)
    for place in np.ndindex(*ids.shape):
        out[place][ids[place]] = 1
    return out


HEALTHY = {
    "pairwise distances": (lambda x, y: torch.cdist(x, y), pairwise_loop, ["rows size", "others size"]),
    "attention": (F.scaled_dot_product_attention, attention_loop, ["batch time size"] * 3),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[-1:]), layer_norm_loop, "rows features"),
    "cross entropy": (F.cross_entropy, per_row_loss_loop, ["rows 5", "rows < 5"]),
    "windows": (lambda x: x[:, :-1] + x[:, 1:], windows_loop, "batch time size"),
    "one-hot": (lambda ids: F.one_hot(ids, 7).float(), one_hot_loop, "batch time < 7"),
    "a given matrix": (
        lambda x: x @ x.T,
        lambda x: torch.stack([(x * row).sum(1) for row in x]),
        torch.randn(6, 4),
    ),
    "several results": (
        lambda x: {"mean": x.mean(0), "top": x.max(0).values},
        lambda x: {"mean": sum(x) / len(x), "top": torch.stack([c.max() for c in x.T])},
        {"x": "rows size"},
    ),
    "half precision": (
        lambda x: x.softmax(-1),
        lambda x: torch.stack([row.exp() / row.exp().sum() for row in x]),
        [torch.randn(5, 7, dtype=torch.float16)],
    ),
    "cancellation": (lambda x: (x - x.mean(0)).sum(0), lambda x: sum(row - x.mean(0) for row in x), "rows size"),
}


@pytest.mark.parametrize("case", HEALTHY)
def test_is_silent_about_functions_that_are_the_same(case):
    fast, slow, inputs = HEALTHY[case]
    result = diagnostics.compare(fast, slow, inputs)
    assert result.ok, str(result)
    result.assert_same()
    assert len(result.cases) > 1
    assert str(result).startswith("fast and slow are the same") or "are the same in" in str(result)


def wrong_reshape(x):
    """Heads split by a view where axes are to be exchanged."""
    batch, time, size = x.shape
    return x.reshape(batch, size, time)


def loss_of_column(prediction, target):
    return ((prediction.unsqueeze(-1) - target) ** 2).mean()


def unbroadcast_loop(prediction, target):
    return sum((p - t) ** 2 for p, t in zip(prediction, target, strict=False)) / len(target)


def in_place(x):
    x -= x.mean()
    return x * 2


BROKEN = {
    "softmax over rows": (
        lambda x: x.softmax(0),
        lambda x: torch.stack([row.softmax(0) for row in x]),
        "rows classes",
        ["differs first at [0, 0] of axes (rows, classes)", "names the wrong one"],
    ),
    "swapped axes": (
        lambda x, y: torch.cdist(y, x),
        pairwise_loop,
        ["rows size", "others size"],
        [
            "has shape (3, 4) from fast and (4, 3) from pairwise_loop",
            "axis 0 (rows) and axis 1 (others) exchanged",
        ],
    ),
    "reshape for transpose": (
        wrong_reshape,
        lambda x: torch.stack([torch.stack([row[:, c] for c in range(x.shape[2])]) for row in x]),
        "batch time size",
        ["in another order, as reshape or view gives", "einops.rearrange"],
    ),
    "broadcast in a loss": (
        loss_of_column,
        unbroadcast_loop,
        ["rows", "rows"],
        ["combines (4, 1) with (4,) into (4, 4)", "diagnose rules broadcast-loss"],
    ),
    "off by one": (
        lambda x: torch.cat([torch.zeros(x.shape[0], 1), x.cumsum(1)[:, :-1]], 1),
        lambda x: torch.stack([torch.stack([row[: i + 1].sum() for i in range(len(row))]) for row in x]),
        "batch time",
        ["one position later along axis 1 (time)"],
    ),
    "sum for mean": (
        lambda x: x.sum(1),
        lambda x: torch.stack([sum(row) / len(row) for row in x]),
        "batch time size",
        ["5 times", "the size of time: a sum in the place of a mean"],
    ),
    "detached": (
        lambda x: (x.detach() * 2).sum(1) + x.sum(1) * 0,
        lambda x: torch.stack([2 * sum(row) for row in x]),
        "rows size",
        ["the gradient of x differs first at [0, 0]"],
    ),
    "no gradient": (
        lambda x: torch.tensor(x.detach().numpy() ** 2),
        lambda x: torch.stack([row * row for row in x]),
        "rows size",
        ["the gradient of x: none from fast, there is one from slow", "diagnose rules no-gradient"],
    ),
    "gradient of a norm at 0": (
        lambda x: x.abs().sqrt(),
        lambda x: torch.stack([torch.where(v != 0, v.abs().clamp(min=1e-9).sqrt(), v * 0) for v in x]),
        [torch.tensor([0.0, 1.0, -2.0])],
        ["the gradient of x differs first at [0]"],
    ),
    "dtype": (
        lambda x: x.double().sum(0),
        lambda x: sum(x),
        "rows size",
        ["the result is float64 from fast and float32 from slow", "check_dtype=False"],
    ),
    "changed input": (
        in_place,
        lambda x: 2 * (x - x.mean()),
        "rows size",
        ["writes to argument x", "add, not add_"],
    ),
    "one row is squeezed away": (
        lambda x: x.squeeze().sum(-1),
        lambda x: torch.stack([row.sum() for row in x]),
        "rows size",
        ["differ in 2 of 6 cases. With rows=1 size=5", "has shape () from fast and (1,) from slow"],
    ),
    "one row raises": (
        lambda x: x.squeeze()[:, 0],
        lambda x: torch.stack([row[0] for row in x]),
        "rows size",
        ["fast raised IndexError", "slow returned a result"],
    ),
    "precision": (
        lambda x: (x**2).mean(0) - x.mean(0) ** 2,
        lambda x: torch.stack([((c - c.mean()) ** 2).mean() for c in x.T]),
        [1000 + torch.randn(16, 3)],
        ["In float64 both are the same", "loses precision"],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_says_where_they_differ_and_why(case):
    fast, slow, inputs, said = BROKEN[case]
    result = diagnostics.compare(fast, slow, inputs)
    text = re.sub(r"\b(?:loss_of_column|wrong_reshape|in_place|fast)\b", "fast", str(result))
    for words in said:
        assert words in text, text
    with pytest.raises(diagnostics.CheckFailed, match="differ in") as raised:
        result.assert_same()
    assert isinstance(raised.value, AssertionError)
    assert str(raised.value) == str(result)


def test_names_the_size_of_a_difference_against_the_tolerance():
    result = diagnostics.compare(
        lambda x: x.sum(1) + torch.tensor([0, 0.5, 0, 0]),
        lambda x: torch.stack([r.sum() for r in x]),
        torch.ones(4, 9),
    )
    difference = result.first.difference
    assert (difference.index, difference.got, difference.expected) == ((1,), 9.5, 9.0)
    assert difference.largest == 0.5
    assert difference.tolerance == pytest.approx(8 * 6 * 2**-23 * 9)
    assert "1 of 4 values differs, by up to 0.5. There 5.14984e-05 is allowed: 48 roundings of float32" in str(
        result
    )


def test_compares_numpy_without_gradients():
    def loop(x):
        out = np.zeros(x.shape[1], dtype=x.dtype)
        for row in x:
            out += row
        return out / len(x)

    assert diagnostics.compare(lambda x: x.mean(0), loop, "rows size", framework="numpy").ok
    flipped = diagnostics.compare(lambda x: x.mean(0)[::-1], loop, "rows size", framework="numpy")
    assert "reversed along axis 0 (size)" in str(flipped)
    double = diagnostics.compare(lambda x: x.mean(0), lambda x: loop(x.astype(float)), np.ones((3, 2), np.float32))
    assert "float32 from fast and float64 from slow" in str(double)


def test_leaves_model_data_and_random_states_alone():
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    layer = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    x = torch.randn(6, 3, requires_grad=True)
    before = (x.detach().clone(), layer[0].running_mean.clone(), torch.get_rng_state(), random.getstate())
    numpy_before = np.random.get_state()[1].copy()

    def noisy(x):
        x.add_(1)
        return layer(x) + torch.rand(1) + random.random() + np.random.rand()

    diagnostics.compare(noisy, noisy, [x]).assert_same()
    assert torch.equal(x, before[0])
    assert x.grad is None
    assert torch.equal(layer[0].running_mean, before[1])
    assert torch.equal(torch.get_rng_state(), before[2])
    assert random.getstate() == before[3]
    assert (np.random.get_state()[1] == numpy_before).all()


def test_sizes_that_no_one_declared_may_be_refused():
    weight = torch.randn(4, 2)

    def slow(x):
        return torch.stack([sum(x[i, j] * weight[j] for j in range(4)) for i in range(len(x))])

    result = diagnostics.compare(lambda x: x @ weight, slow, torch.randn(6, 4))
    assert result.ok
    assert "Not compared: axes of size 4 cut to 3; a function does not take them" in str(result)


def test_structure_that_values_have_is_kept():
    edges = torch.tensor([-1.0, 0.0, 1.0])

    def slow(x, edges):
        return torch.tensor([sum(int(e < v) for e in edges) for v in x])

    assert diagnostics.compare(lambda x, e: torch.bucketize(x, e), slow, [torch.randn(7), edges]).ok


def test_stops_when_the_time_is_over(monkeypatch):
    monkeypatch.setattr("diagnostics.api.checks.compare.SECONDS", 0.0)
    result = diagnostics.compare(lambda x: x * 1, lambda x: x + 0, "rows size")
    assert len(result.cases) == 1
    assert result.left_out == 5
    assert "Not compared: 5 cases, for which no time was left." in str(result)


def test_gradients_of_equal_values_may_differ():
    result = diagnostics.compare(
        lambda x: x.amax(-1), lambda x: torch.stack([max(r) for r in x]), torch.zeros(3, 4)
    )
    assert result.ok
    assert "they are equal values of a maximum, or another kink, where both gradients are right" in str(result)
    wrong = diagnostics.compare(
        lambda x: x.amax(-1).detach() + 0 * x.sum(-1),
        lambda x: torch.stack([max(r) for r in x]),
        torch.zeros(3, 4),
    )
    assert not wrong.ok


def test_vary_false_compares_the_inputs_given_alone():
    result = diagnostics.compare(lambda x: x.squeeze(), lambda x: x, torch.ones(3, 2), vary=False)
    assert [case.name for case in result.cases] == ["the inputs given"]
    assert result.ok
    assert result.left_out == 0


def double(x):
    return 2 * x


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None, double, "rows"), "was given None as fast. It takes two functions"),
        ((double, 3, "rows"), "was given an int as slow"),
        ((double, double, []), "was given no inputs"),
        ((double, double, "batch, time"), "names its axes as 'batch, time'. Write one name or number"),
        ((double, double, "(b t) d"), "names its axes as '(b t) d'"),
        ((double, double, "rows 0"), "An axis of size 0 holds nothing"),
        ((double, double, "rows < 0"), "names its axes as 'rows < 0'"),
        (
            (double, double, ["rows", "rows"]),
            "cannot call fast, double(x), with the inputs given: too many positional",
        ),
        ((double, double, {"y": "rows"}), "missing a required argument: 'x'"),
        (
            (double, lambda x: x.nothing, "rows"),
            "slow, and that raised on the first inputs (rows=4): AttributeError",
        ),
    ],
)
def test_says_what_is_wrong_with_its_arguments(arguments, said):
    with pytest.raises(diagnostics.InvalidInput) as raised:
        diagnostics.compare(*arguments)
    assert said in str(raised.value)


def test_refuses_a_framework_it_does_not_know():
    with pytest.raises(diagnostics.InvalidInput, match="expected torch, tensorflow or numpy"):
        diagnostics.compare(double, double, "rows", framework="jax")
