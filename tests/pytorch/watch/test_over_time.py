"""A fixed batch and the layers over time: what is seen, and that the run is bit for bit the same."""

import copy

import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.collectors.shared import over_time as looked_at
from diagnostics.facts.over_time import QUANTILES

WORDS = ("cat", "dog", "bird")


def net():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


def train(steps=60, model=None, loss=nn.functional.cross_entropy, targets=None, **options):
    """Return model, optimizer and report; a function for `fixed_batch` gets the data that is trained on."""
    torch.manual_seed(0)
    model = net() if model is None else model
    inputs = torch.randn(64, 6)
    labels = inputs[:, :3].argmax(1) if targets is None else targets(inputs)
    if callable(batch := options.get("fixed_batch")):
        options["fixed_batch"] = batch(inputs, labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    with diagnostics.watch(model, optimizer, **options) as watch:
        for _ in range(steps):
            rows = torch.randint(0, 64, (16,))
            optimizer.zero_grad()
            value = loss(model(inputs[rows]), labels[rows])
            value.backward()
            optimizer.step()
            watch.step(value)
    return model, optimizer, watch.report()


def the_first(count, **options):
    return lambda inputs, labels: diagnostics.FixedBatch(
        inputs[:count], labels[:count], nn.functional.cross_entropy, **options
    )


def test_the_run_is_the_same_bit_for_bit():
    ends = []
    for options in ({}, {"fixed_batch": the_first(20), "histograms": True}):
        model, optimizer, _ = train(**options)
        values = [*model.state_dict().values(), *(p.grad for p in model.parameters()), torch.get_rng_state()]
        values += [v for state in optimizer.state.values() for v in state.values()]
        ends.append(values)
        assert not optimizer._optimizer_step_pre_hooks
        assert model.training
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))


def test_predictions_stand_beside_targets_and_loss():
    model, _, report = train(fixed_batch=the_first(20, decode_target=WORDS.__getitem__))
    seen = report.fixed_batch
    assert [look.step for look in seen.looks] == [0, 1, 2, 5, 10, 20, 50, 60]
    assert (seen.size, len(seen.inputs), len(seen.targets)) == (20, looked_at.EXAMPLES, looked_at.EXAMPLES)
    torch.manual_seed(0)
    fresh, inputs = net(), torch.randn(64, 6)
    fresh(inputs[torch.randint(0, 64, (16,))])  # the batch norm has seen the batch of the first step
    labels = inputs[:, :3].argmax(1)
    for look, at in ((seen.looks[0], fresh), (seen.looks[-1], model)):
        with torch.no_grad():
            outputs = at.eval()(inputs[:20])
        assert look.loss == pytest.approx(nn.functional.cross_entropy(outputs, labels[:20]).item(), rel=1e-5)
        best = outputs[:8].softmax(1).max(1)
        assert look.predictions == tuple(
            f"{WORDS[number]} ({share:.0%})"
            for number, share in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        )
        assert look.right == tuple((best.indices == labels[:8]).tolist())
    assert seen.targets == tuple(WORDS[label] for label in labels[:8])
    assert seen.looks[-1].loss < 0.5 * seen.looks[0].loss
    page = report.rendered("html")
    assert "A fixed batch over time" in page
    assert seen.looks[-1].predictions[0] in page


def test_what_decode_writes_is_escaped():
    _, _, report = train(3, fixed_batch=the_first(2, decode=lambda row: f"<b>{len(row)} & more</b>"))
    assert report.fixed_batch.inputs == ("<b>6 & more</b>",) * 2
    assert "&lt;b&gt;6 &amp; more&lt;/b&gt;" in report.rendered("html")


def test_the_loop_may_change_its_batch():
    held = {}

    def batch(inputs, labels):
        held["inputs"] = inputs[:4].clone()
        return diagnostics.FixedBatch(held["inputs"], labels[:4], nn.functional.cross_entropy)

    _, _, plain = train(5, fixed_batch=the_first(4))
    torch.manual_seed(0)
    _, _, report = train(
        5, fixed_batch=batch, loss=lambda o, t: (held["inputs"].zero_(), nn.CrossEntropyLoss()(o, t))[1]
    )
    assert report.fixed_batch.looks == plain.fixed_batch.looks


def test_a_model_that_computes_its_loss_shows_sequences():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 8), nn.Linear(8, 9)

        def forward(self, ids, labels=None):
            logits = self.head(self.embed(ids))
            return {"loss": nn.functional.cross_entropy(logits.transpose(1, 2), labels), "logits": logits}

    torch.manual_seed(0)
    model, ids = Tagger(), torch.arange(9).repeat(2, 1)
    labels = ids.roll(-1, 1).clone()
    labels[:, -1] = -100
    batch = diagnostics.FixedBatch(
        {"ids": ids, "labels": labels},
        decode=lambda row: "".join("abcdefghi"[n] for n in row),
        decode_target=lambda row: "".join("abcdefghi"[n] for n in row),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer, fixed_batch=batch, look_steps=[3]) as watch:
        for _ in range(40):
            optimizer.zero_grad()
            model(ids, labels)["loss"].backward()
            optimizer.step()
    seen = watch.report().fixed_batch
    assert (seen.inputs[0], seen.targets[0]) == ("abcdefghi", "bcdefghi")
    assert [look.step for look in seen.looks] == [3, 40]
    assert seen.looks[-1].predictions[0].startswith("bcdefghi")
    assert seen.looks[-1].right == (True, True)


def test_the_values_of_a_regression_are_shown_as_they_are():
    model = nn.Linear(6, 1)
    _, _, report = train(
        3, model=model, loss=nn.functional.mse_loss, targets=lambda x: x[:, :1] * 2,
        fixed_batch=lambda x, y: diagnostics.FixedBatch(x[:2], y[:2], nn.functional.mse_loss),
    )  # fmt: skip
    look = report.fixed_batch.looks[-1]
    assert look.right == (None, None)
    assert float(look.predictions[0]) == pytest.approx(look_at(model)[0], rel=1e-3)


def look_at(model):
    torch.manual_seed(0)
    with torch.no_grad():
        return model(torch.randn(64, 6))[:2, 0].tolist()


def test_histograms_hold_every_weight_and_the_gradient_of_the_step():
    model, _, report = train(20, histograms=True)
    first, last = report.histograms[0], report.histograms[-1]
    assert [one.step for one in report.histograms] == [0, 1, 2, 5, 10, 20]
    assert list(first.weights) == ["0", "1", "4"]
    torch.manual_seed(0)
    begun = nn.utils.parameters_to_vector(net()[0].parameters()).double()
    for found, values in (
        (first.weights["0"], begun),
        (last.weights["0"], nn.utils.parameters_to_vector(model[0].parameters()).detach().double()),
    ):
        assert found.counts.sum() == values.numel()
        assert found.total == pytest.approx(values.sum().item())
        assert found.squares == pytest.approx(values.square().sum().item())
        assert found.quantiles == pytest.approx(
            values.quantile(torch.tensor(QUANTILES).double()).tolist(), rel=1e-5
        )
        assert (found.share, found.not_finite) == (1.0, 0)
    assert first.gradients["4"].squares > 0
    assert "weights of 4: " in report.rendered("html")


def test_a_gradient_that_is_not_finite_is_counted():
    model = net()

    def loss(outputs, labels):
        return nn.functional.cross_entropy(outputs, labels) + (model[4].bias[0] - model[4].bias[0].detach()).sqrt()

    _, _, report = train(2, model=model, loss=loss, histograms=True)
    assert report.histograms[0].gradients["4"].not_finite == 1


def test_a_large_layer_is_read_in_part():
    torch.manual_seed(0)
    model = nn.Linear(512, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer, histograms=True) as watch:
        model(torch.randn(2, 512)).sum().backward()
        optimizer.step()
    found = watch.report().histograms[0].weights["Linear"]
    assert found.share < 0.3
    assert found.counts.sum() <= 2**16


def test_a_run_of_any_length_is_looked_at_a_few_times():
    steps = [step for step in range(100_001) if looked_at.is_look_step(step)]
    assert steps[:9] == [0, 1, 2, 5, 10, 20, 50, 100, 200]
    assert len(steps) == 17
    _, _, report = train(70, histograms=True, look_steps=range(70))
    assert len(report.histograms) == looked_at.MAX_LOOKS + 1  # and the end


class TestWhatCannotBeShown:
    """Training goes on, and the report says why in a line."""

    def why(self, **options):
        plain, _, _ = train(6)
        model, _, report = train(6, **options)
        assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), model.parameters(), strict=True))
        assert report.faults == ()
        assert report.fixed_batch is None
        return next(stage.detail for stage in report.stages if stage.name == "fixed batch")

    def test_a_batch_that_does_not_fit_the_model(self):
        why = self.why(fixed_batch=lambda x, y: diagnostics.FixedBatch(x[:4, :5], y[:4]))
        assert why.startswith("the model raised RuntimeError for it: mat1 and mat2 shapes cannot be multiplied")

    @pytest.mark.parametrize("name", ["decode", "decode_target"])
    def test_a_function_that_raises(self, name):
        def broken(_value):
            raise KeyError("no such word")

        assert self.why(fixed_batch=the_first(4, **{name: broken})) == f"{name} raised KeyError: 'no such word'"

    def test_a_loss_that_raises(self):
        why = self.why(fixed_batch=lambda x, y: diagnostics.FixedBatch(x[:4], y[:4], lambda o, t: o @ t))
        assert why.startswith("loss_fn raised RuntimeError for it: ")

    def test_a_model_that_cannot_be_copied(self):
        class Locked(nn.Sequential):
            def __deepcopy__(self, memo):
                raise TypeError("cannot pickle a socket")

        torch.manual_seed(0)
        model = Locked(*copy.deepcopy(list(net())))
        _, _, report = train(3, model=model, fixed_batch=the_first(4))
        assert report.fixed_batch is None
        assert "cannot pickle a socket" in report.faults[0]


class TestRefuses:
    def refused(self, optimizer=True, **options):
        model = nn.Linear(6, 3)
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.watch(model, torch.optim.SGD(model.parameters(), 0.1) if optimizer else None, **options)
        return str(error.value)

    def test_what_is_no_batch(self):
        assert self.refused(fixed_batch=(1, 2)).startswith("watch() was given a tuple as fixed_batch. It takes a ")

    def test_a_batch_without_a_tensor(self):
        batch = diagnostics.FixedBatch("a text")
        assert self.refused(fixed_batch=batch).startswith(
            "FixedBatch() was given a str as inputs. It takes a tensor"
        )

    def test_targets_of_another_length(self):
        batch = diagnostics.FixedBatch(torch.ones(4, 6), torch.ones(3))
        assert "inputs with 4 examples, and targets of shape (3,)" in self.refused(fixed_batch=batch)

    def test_steps_that_are_none(self):
        assert "look_steps=[-1]" in self.refused(histograms=True, look_steps=[-1])

    def test_a_loop_without_an_optimizer(self):
        assert self.refused(optimizer=False, histograms=True).startswith("watch() was given no optimizer")
