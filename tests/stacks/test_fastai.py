"""fastai's Learner, watched and examined, with its own optimizers and with PyTorch's."""

import pickle

import fastai.callback.schedule  # noqa: F401  it adds fit_one_cycle and lr_find
import numpy as np
import pytest
import torch
from fastai.basics import CrossEntropyLossFlat, DataLoaders, Learner, OptimWrapper, set_seed
from fastai.callback.training import GradientAccumulation, GradientClip
from fastai.optimizer import Optimizer
from torch import nn
from torch.utils.data import TensorDataset

import diagnostics
from tests.stacks.test_stacks import named, told

SETTINGS = {"own optimizer": {}, "PyTorch's": {"opt_func": lambda p, **o: OptimWrapper(p, torch.optim.Adam, **o)}}


def learner(callbacks=(), model=None, **options):
    set_seed(0, reproducible=True)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 20)).astype(np.float32)
    y = (x @ rng.normal(size=(20, 3))).argmax(1)
    sets = [TensorDataset(torch.tensor(x[part]), torch.tensor(y[part])) for part in (slice(640), slice(640, 800))]
    loaders = DataLoaders.from_dsets(*sets, bs=32, num_workers=0)
    net = (
        nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 3))
        if model is None
        else model
    )
    learn = Learner(loaders, net, loss_func=CrossEntropyLossFlat(), cbs=list(callbacks), **options)
    learn.remove_cbs([one for one in learn.cbs if type(one).__name__ == "ProgressCallback"])
    learn.logger = lambda *_: None
    return learn


def report_of(rate=1e-2, others=(), **options):
    callback = diagnostics.FastaiCallback(every=1, quiet=True)
    learner([callback, *others], **options).fit(3, rate)
    return callback.report()


def is_plain():
    return not hasattr(Optimizer, "register_step_pre_hook") and not hasattr(Optimizer.step, "__wrapped__")


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_a_healthy_fit_gets_a_clean_report_and_the_same_bits(options):
    callback = diagnostics.FastaiCallback(every=1, quiet=True)
    plain, watched = learner(**options), learner([callback], **options)
    for learn in (plain, watched):
        learn.fit_one_cycle(3, 1e-2)
    pairs = zip(plain.model.state_dict().values(), watched.model.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert plain.recorder.losses == watched.recorder.losses
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in watched.model.modules())
    assert is_plain()
    report = callback.report()
    assert report.ok, report
    assert report.faults == ()
    assert report.title == "watched 60 steps of Sequential with a Learner"
    losses = [values[1] for values in watched.recorder.values]
    np.testing.assert_allclose(report.history.evaluations.losses, losses, rtol=1e-6)


def test_losses_and_gradients_are_those_of_their_step():
    losses, norms = [], []

    class Kept(diagnostics.FastaiCallback):
        def before_step(self):
            norms.append(torch.stack([p.grad.norm() for p in self.learn.model.parameters()]).norm().item())

        def after_batch(self):
            losses.append(self.learn.loss.item())
            super().after_batch()

    callback = Kept(every=1, quiet=True)
    learner([callback, GradientClip(0.1)]).fit(1, 1e-2)
    history = callback.report().history
    np.testing.assert_allclose(history.losses.values, losses, rtol=1e-6)
    np.testing.assert_allclose(history.gradients.norms, norms, rtol=1e-5)
    assert max(norms) <= 0.1 * 1.001


class Detached(nn.Sequential):
    def forward(self, x):
        return super().forward(x).detach().requires_grad_()


@pytest.mark.parametrize("own", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"model": Detached(nn.Linear(20, 3))}, "unchanged-parameters"),
        ({"rate": 0.0}, "unchanged-parameters"),
        ({"splitter": lambda model: [list(model[3].parameters())]}, "optimizer-misses-parameters"),
        ({"rate": 30.0}, "dead-units"),
    ],
)
def test_a_broken_fit_is_named(own, options, rule):
    report = report_of(**own, **options).as_dict()
    assert rule in set(named(report["findings"])), told(report)


def test_micro_batches_of_an_accumulation_are_one_step():
    report = report_of(others=[GradientAccumulation(64)])
    assert report.ok, report
    assert report.title == "watched 30 steps of Sequential with a Learner"


def test_the_search_for_a_rate_is_not_watched(tmp_path):
    callback = diagnostics.FastaiCallback(every=1)
    learn = learner([callback], path=tmp_path)
    learn.lr_find(show_plot=False)
    assert callback.report().title.startswith("watched nothing: lr_find() raises the rate")
    learn.fit_one_cycle(2, 1e-2)
    assert callback.report().ok, callback.report()
    assert is_plain()


def test_training_in_two_phases_is_clean():
    callback = diagnostics.FastaiCallback(every=1, quiet=True)
    learn = learner([callback], splitter=lambda m: [list(m[:2].parameters()), list(m[2:].parameters())])
    learn.freeze()
    learn.fit(2, 1e-2)
    assert callback.report().ok, callback.report()
    learn.unfreeze()
    learn.fit(2, slice(1e-4, 1e-2))
    assert callback.report().ok, callback.report()


def test_a_bad_fit_is_told_on_stderr(capsys):
    learner([diagnostics.FastaiCallback()]).fit(2, 0.0)
    assert "unchanged-parameters" in capsys.readouterr().err


def test_an_exported_learner_and_a_copy_have_watched_nothing(tmp_path):
    callback = diagnostics.FastaiCallback(every=3, quiet=True)
    learner([callback]).fit(1, 1e-2)
    again = pickle.loads(pickle.dumps(callback))
    assert again._watched["every"] == 3
    assert again.report().title == "watched nothing: training has not begun"


def test_a_training_after_one_that_raised_is_watched_anew():
    callback = diagnostics.FastaiCallback(every=1, quiet=True)
    learn = learner([callback])
    learn.loss_func, right = None, learn.loss_func
    with pytest.raises(TypeError):
        learn.fit(1, 1e-2)
    learn.loss_func = right
    learn.fit(1, 1e-2)
    assert callback.report().title == "watched 20 steps of Sequential with a Learner"
    assert is_plain()


def test_a_wrong_argument_is_told():
    with pytest.raises(diagnostics.InvalidInput, match=r"FastaiCallback\(\) was given every=0"):
        diagnostics.FastaiCallback(every=0)


def labels_of(learn):
    return [labels.tolist() for _, labels in learn.dls.train]


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_a_healthy_learner_is_examined_and_left_as_it_was(options):
    learn = learner(**options)
    report = diagnostics.examine(learn)
    assert report.ok, report
    assert report.title == "examined Sequential with a Learner"
    assert [stage.status for stage in report.stages[1:6]] == ["passed"] * 5, report
    assert learn.opt is None
    untouched = learner(**options)
    assert labels_of(learn) == labels_of(untouched)
    pairs = zip(learn.model.state_dict().values(), untouched.model.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"model": nn.Sequential(nn.Linear(20, 3), nn.Softmax(-1))}, "probabilities-as-logits"),
        ({"model": nn.Linear(20, 2)}, "labels-out-of-range"),
        ({"model": Detached(nn.Linear(20, 3))}, "no-gradient"),
        ({"splitter": lambda model: [list(model[3].parameters())]}, "optimizer-misses-parameters"),
    ],
)
def test_a_broken_learner_is_named(options, rule):
    report = diagnostics.examine(learner(**options)).as_dict()
    assert rule in set(named(report["findings"])), told(report)


def test_overfit_takes_a_learner():
    result = diagnostics.overfit(learner(model=nn.Linear(20, 3)), seconds=10)
    assert result.ok, result


def test_further_arguments_beside_a_learner_are_refused():
    with pytest.raises(diagnostics.InvalidInput, match="given a Learner and further arguments"):
        diagnostics.examine(learner(), [1])
