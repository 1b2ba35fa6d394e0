"""`GradientChecks`, on small models of PyTorch."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import diagnostics

CHECKS = diagnostics.GradientChecks()


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


X, Y = seeded(lambda: (torch.randn(8, 6), torch.randint(0, 3, (8,))))


class Lora(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 3).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.zeros(3, 2))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


class OwnLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 6), nn.Linear(6, 3)

    def forward(self, input_ids, labels=None):
        logits = self.head(self.embed(input_ids).mean(1))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pooler, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.body(x).tanh())


class Detached(Unused):
    def forward(self, x):
        return self.head(self.pooler(self.body(x).detach()))


class TimesZero(Unused):
    def forward(self, x):
        return self.head(self.body(x) + 0 * self.pooler(x))


def mlp(*extra):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), *extra, nn.Linear(16, 3))


def frozen():
    return nn.Sequential(nn.Linear(6, 6).requires_grad_(False), nn.Linear(6, 3))


def dead():
    model = mlp()
    nn.init.constant_(model[0].bias, -1e3)
    return model


def infinite():
    model = mlp()
    with torch.no_grad():
        model[2].weight[0, 0] = float("inf")
    return model


def root_of_zero(prediction, target):
    return F.cross_entropy(prediction, target) + (prediction - prediction).abs().sum().sqrt()


class TestEveryParameter:
    @pytest.mark.parametrize(
        ("make", "batch", "loss_fn"),
        [
            (mlp, (X, Y), F.cross_entropy),
            (lambda: mlp(nn.BatchNorm1d(16), nn.Dropout(0.2)), (X, Y), nn.CrossEntropyLoss()),
            (Lora, (X, Y), F.cross_entropy),
            (OwnLoss, {"input_ids": torch.arange(16).reshape(8, 2), "labels": Y}, None),
            (frozen, (X, Y), F.cross_entropy),
            (lambda: nn.TransformerEncoderLayer(6, 2, 8, batch_first=True),
             (X[:, None], X[:, None]), F.mse_loss),
        ],
        ids=["mlp", "batch norm and dropout", "LoRA", "own loss", "frozen", "transformer"],
    )  # fmt: skip
    def test_is_silent_where_every_parameter_learns(self, make, batch, loss_fn):
        result = CHECKS.every_parameter(seeded(make), batch, loss_fn)
        assert result.passed, str(result)

    @pytest.mark.parametrize(
        ("make", "loss_fn", "said", "rule"),
        [
            (Unused, F.cross_entropy, "2 of 6 trainable parameters would never change: pooler.*", "unreached"),
            (Detached, F.cross_entropy, "body.* (2 parameters) without any gradient", "unreached-parameters"),
            (TimesZero, F.cross_entropy, "with a gradient of exactly 0 in every step", "unreached-parameters"),
            (dead, F.cross_entropy, "exactly 0 in every step", "unreached-parameters"),
            (infinite, F.cross_entropy, "is NaN or infinite", "non-finite-gradients"),
            (mlp, root_of_zero, "is NaN or infinite (4 of 4 parameters)", "non-finite-gradients"),
            (mlp, lambda p, y: F.cross_entropy(p.detach(), y), "4 of 4 trainable parameters", "no-gradient"),
        ],
    )
    def test_names_the_parameters_that_do_not(self, make, loss_fn, said, rule):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.every_parameter(seeded(make), (X, Y), loss_fn)
        assert said in str(raised.value)
        assert f"Read: diagnose rules {rule}" in str(raised.value)

    def test_leaves_out_those_named(self):
        assert CHECKS.every_parameter(Unused(), (X, Y), F.cross_entropy, except_for=["pooler.*"]).passed
        with pytest.raises(
            diagnostics.InvalidInput, match=r"names 'poler.bias', and no .* nearest is 'pooler.bias'"
        ):
            CHECKS.every_parameter(Unused(), (X, Y), F.cross_entropy, except_for=["poler.bias"])

    def test_changes_nothing(self):
        model = seeded(lambda: mlp(nn.BatchNorm1d(16), nn.Dropout(0.5)).eval())
        F.cross_entropy(model(X), Y).backward()
        before = copy.deepcopy(model.state_dict()), [p.grad for p in model.parameters()], torch.get_rng_state()
        grads = [grad.clone() for grad in before[1]]
        CHECKS.every_parameter(model, (X, Y), F.cross_entropy)
        CHECKS.accumulation(model, (X, Y), F.cross_entropy, batch_statistics=False)
        assert all(torch.equal(value, before[0][name]) for name, value in model.state_dict().items())
        assert all(p.grad is grad for p, grad in zip(model.parameters(), before[1], strict=True))
        assert all(torch.equal(*pair) for pair in zip(before[1], grads, strict=True))
        assert torch.equal(torch.get_rng_state(), before[2])
        assert not model.training

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((None, (X, Y)), "was given None as model. It takes a torch.nn.Module, or a Keras model"),
            ((nn.ReLU(), (X, Y), F.cross_entropy), "ReLU has no parameters"),
            (
                (mlp().requires_grad_(False), (X, Y), F.cross_entropy),
                "without trainable parameters: all are frozen",
            ),
            ((mlp(), (X, Y), 3), "was given an int as loss_fn"),
            ((mlp(), (X, Y)), "no loss_fn was given"),
            ((mlp(), (X[:, :2], Y), F.cross_entropy), "calling the model on this batch raised RuntimeError"),
            ((nn.LazyLinear(3), (X, Y), F.cross_entropy), "get their shape from the first batch"),
        ],
    )
    def test_says_what_is_wrong_with_its_arguments(self, arguments, said):
        with pytest.raises(diagnostics.InvalidInput) as raised:
            CHECKS.every_parameter(*arguments)
        assert said in str(raised.value)
        with pytest.raises(diagnostics.InvalidInput, match="expected a list of names"):
            CHECKS.every_parameter(mlp(), (X, Y), F.cross_entropy, except_for="0.bias")


def averaged(model, parts):
    for x, y in parts:
        (F.cross_entropy(model(x), y) / len(parts)).backward()


def added(model, parts):
    for x, y in parts:
        F.cross_entropy(model(x), y).backward()


def divided_twice(model, parts):
    for x, y in parts:
        (F.cross_entropy(model(x), y) / len(parts) ** 2).backward()


def zeroed_between(model, parts):
    for x, y in parts:
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()


def one_left_out(model, parts):
    averaged(model, parts[:-1])


def contrastive(prediction, target):
    similar = F.normalize(prediction) @ F.normalize(prediction).T
    return F.cross_entropy(similar, torch.arange(len(target)))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(12, 6), nn.Linear(6, 12)

    def forward(self, ids):
        return self.head(self.embed(ids)).transpose(1, 2)


IDS = torch.arange(48).reshape(8, 6) % 12
COUNTED = IDS.roll(1, 1).masked_fill(torch.arange(6) > torch.arange(8)[:, None] % 6, -100)


class TestAccumulation:
    @pytest.mark.parametrize(
        ("make", "batch", "loss_fn", "options"),
        [
            (mlp, (X, Y), F.cross_entropy, {}),
            (mlp, (X, Y), F.cross_entropy, {"parts": 3}),
            (mlp, (X, Y), F.cross_entropy, {"accumulate": averaged}),
            (lambda: mlp(nn.Dropout(0.5)), (X, Y), F.cross_entropy, {"parts": 8}),
            (lambda: mlp(nn.LayerNorm(16)), (X, Y), F.cross_entropy, {}),
            (lambda: mlp(nn.BatchNorm1d(16)), (X, Y), F.cross_entropy, {"batch_statistics": False}),
            (Tokens, (IDS, IDS), F.cross_entropy, {}),
            (lambda: mlp().bfloat16(), (X.bfloat16(), Y), F.cross_entropy, {}),
        ],
    )
    def test_is_silent_where_the_gradient_is_the_same(self, make, batch, loss_fn, options):
        result = CHECKS.accumulation(seeded(make), batch, loss_fn, **options)
        assert result.passed
        assert result.numbers["ratio"] == pytest.approx(1, abs=0.05)
        assert "times that of the whole batch" in result.message

    @pytest.mark.parametrize(
        ("make", "batch", "loss_fn", "options", "said", "ratio"),
        [
            (mlp, (X, Y), F.cross_entropy, {"accumulate": added}, "4 times too large. The losses", 4),
            (mlp, (X, Y), F.cross_entropy, {"accumulate": divided_twice}, "4 times too small", 0.25),
            (mlp, (X, Y), nn.CrossEntropyLoss(reduction="sum"), {}, "adds up over rows (reduction='sum')", 0.25),
            (mlp, (X, Y), F.cross_entropy, {"accumulate": zeroed_between}, "of the last micro-batch alone", None),
            (mlp, (X, Y), F.cross_entropy, {"accumulate": one_left_out}, "differs most", None),
            (lambda: mlp(nn.BatchNorm1d(16)), (X, Y), F.cross_entropy, {}, "Batch norm is the reason: it", None),
            (mlp, (X, Y), contrastive, {}, "depends on which other rows", None),
            (Tokens, (IDS, COUNTED), F.cross_entropy, {}, "labels that count, and each counts the same", None),
        ],
    )  # fmt: skip
    def test_tells_the_ratio_and_the_reason(self, make, batch, loss_fn, options, said, ratio):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.accumulation(seeded(make), batch, loss_fn, **options)
        assert said in str(raised.value)
        if ratio is not None:
            assert f"of 4 micro-batches is {ratio:.4g} times that of the whole batch" in str(raised.value)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"parts": 9}, "expected a whole number from 2 to the rows of the batch, 8"),
            ({"parts": True}, "parts=True"),
            ({"accumulate": 3}, "was given an int as accumulate"),
            ({"accumulate": lambda model, parts: None}, "no parameter of that model has a gradient"),
            ({"accumulate": lambda model: None}, "and that raised TypeError"),
        ],
    )
    def test_says_what_is_wrong_with_its_arguments(self, options, said):
        with pytest.raises(diagnostics.InvalidInput) as raised:
            CHECKS.accumulation(mlp(), (X, Y), F.cross_entropy, **options)
        assert said in str(raised.value)

    def test_says_that_there_is_no_gradient(self):
        with pytest.raises(diagnostics.InvalidInput, match="found no gradient of the whole batch"):
            CHECKS.accumulation(mlp(), (X, Y), lambda p, y: F.cross_entropy(p * 0, y) * 0)


class Recurrent(nn.Module):
    def __init__(self, kind=nn.RNN, gain=1.0, pool=False, forget=0.0, detach=0):
        super().__init__()
        self.rnn, self.head, self.pool, self.detach = kind(4, 16, batch_first=True), nn.Linear(16, 2), pool, detach
        with torch.no_grad():
            if kind is nn.LSTM:
                self.rnn.bias_hh_l0[16:32] = forget
                self.rnn.bias_ih_l0[16:32] = 0
            self.rnn.weight_hh_l0.mul_(gain)

    def forward(self, x):
        if self.detach:
            _, state = self.rnn(x[:, : -self.detach])
            out, _ = self.rnn(x[:, -self.detach :], state.detach())
        else:
            out, _ = self.rnn(x)
        return self.head(out.mean(1) if self.pool else out[:, -1])


class Linear(nn.Module):
    """A recurrence without a squashing function, whose gradient grows."""

    def __init__(self):
        super().__init__()
        self.weight, self.head = nn.Parameter(3.0 * torch.eye(4)), nn.Linear(4, 2)

    def forward(self, x):
        state = x[:, 0] * 0
        for part in x.unbind(1):
            state = part + state @ self.weight
        return self.head(state)


class Attention(nn.Module):
    def __init__(self, window=0, ids=False):
        super().__init__()
        self.embed = nn.Embedding(20, 8) if ids else nn.Linear(4, 8)
        self.layer, self.window = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), window

    def forward(self, x):
        x = self.embed(x)
        places = torch.arange(x.shape[1])
        mask = (places[:, None] - places).abs() >= self.window if self.window else None
        return self.layer(x, src_mask=mask)


class TestThroughTime:
    @pytest.mark.parametrize(
        ("make", "inputs"),
        [
            (Attention, "2 time 4"),
            (lambda: Attention(ids=True), "2 time < 20"),
            (lambda: Recurrent(nn.LSTM, forget=4.0), "2 time 4"),
            (lambda: Recurrent(nn.RNN, pool=True), "2 time 4"),
            (lambda: Recurrent(nn.GRU, pool=True), lambda length: torch.ones(3, length, 4)),
            (lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(1)), None),
        ],
        ids=["attention", "tokens", "open forget gate", "mean", "GRU", "flattened"],
    )
    def test_is_silent_where_the_gradient_reaches_the_beginning(self, make, inputs):
        model = seeded(make)
        if inputs is None:  # of one length only
            model(torch.ones(1, 32, 4))
        lengths = (32,) if inputs is None else (8, 32)
        profile = CHECKS.through_time(model, inputs or "2 time 4", lengths=lengths)
        assert profile.result().passed
        assert profile.share(32) > 1e-6
        assert str(profile).count("positions |") == len(lengths)

    @pytest.mark.parametrize(
        ("make", "said", "rule"),
        [
            (lambda: Recurrent(gain=0.5), "and falls to a tenth every", "vanishing-gradients"),
            (lambda: Recurrent(nn.LSTM, forget=-2.0), "it learns nothing from what", "vanishing-gradients"),
            (lambda: Recurrent(pool=False, detach=4), "It reaches 4 positions back, and is exactly 0 before them",
             "vanishing-gradients"),
            (lambda: Attention(window=3), "A mask, a window, or a detach() cuts them off", "vanishing-gradients"),
            (Linear, "it grows on its way back", "exploding-gradients"),
            (lambda: Recurrent(nn.LSTM), "falls to a tenth every", "vanishing-gradients"),
        ],
        ids=["small weights", "closed forget gate", "detached", "window", "growing", "LSTM as it is made"],
    )  # fmt: skip
    def test_says_where_the_gradient_fades(self, make, said, rule):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.through_time(seeded(make), "2 time 4", lengths=(8, 32, 64))
        assert said in str(raised.value)
        assert f"Read: diagnose rules {rule}" in str(raised.value)
        assert "64 positions |" in str(raised.value)

    def test_draws_the_gradient(self, tmp_path):
        profile = CHECKS.through_time(seeded(Recurrent), "2 time 4", lengths=(4, 8), at_least=0.0)
        lines = str(profile).splitlines()
        assert lines[1].startswith("4 positions |")
        assert lines[1].split("|")[1].endswith("█")
        assert len(lines[2].split("|")[1]) == 8
        profile.save(tmp_path / "profile.html")
        page = (tmp_path / "profile.html").read_text()
        assert page.count("<svg") == 2
        assert "Gradient norm by position, 8 positions" in page

    def test_changes_nothing(self):
        model = seeded(lambda: Recurrent(nn.LSTM, pool=True)).train()
        before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
        CHECKS.through_time(model, "2 time 4", lengths=(4,))
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert all(p.grad is None for p in model.parameters())
        assert torch.equal(torch.get_rng_state(), state)
        assert model.training

    @pytest.mark.parametrize(
        ("inputs", "options", "said"),
        [
            ("2 time", {}, "ran the model on a sequence of 8, and that raised"),
            ("batch time 4", {}, "One axis grows, the second, and is named"),
            (3, {}, "was given an int as inputs"),
            ("2 time 4", {"lengths": ()}, "expected whole numbers, each at least 2"),
            ("2 time 4", {"lengths": (1,)}, "lengths=(1,)"),
            ("2 time 4", {"at_least": 2}, "expected a share"),
            ("2 time 4", {"output": 3}, "was given an int as output"),
            ("2 time 4", {"output": lambda out: 3}, "returned an int. It takes a function that picks"),
            ("2 time 4", {"output": lambda out: out.detach()}, "got an output without a gradient"),
            (lambda length: torch.ones(2, length, 4, dtype=torch.long), {}, "and that raised"),
        ],
    )
    def test_says_what_is_wrong_with_its_arguments(self, inputs, options, said):
        with pytest.raises(diagnostics.InvalidInput) as raised:
            CHECKS.through_time(seeded(Recurrent), inputs, **options)
        assert said in str(raised.value)
