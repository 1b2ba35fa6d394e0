"""`diagnostics.SkorchCallback` in real fits of skorch."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier, NeuralNetRegressor
from torch import nn

import diagnostics
from tests.stacks.test_stacks import named, told

X, y = make_classification(640, n_features=20, n_informative=10, n_classes=3, random_state=0)
X, y = X.astype(np.float32), y.astype(np.int64)


class Module(nn.Module):
    def __init__(self, units=32, dropout=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, units), nn.ReLU(), nn.Dropout(dropout), nn.Linear(units, 3))

    def forward(self, X):
        return self.net(X).softmax(-1)


class WithoutGradient(Module):
    def forward(self, X):
        return super().forward(X).detach().requires_grad_()


class OfTheHeadOnly(NeuralNetClassifier):
    def get_all_learnable_params(self):
        return list(self.module_.net[3].named_parameters())


def fitted(kind=NeuralNetClassifier, module=Module, callbacks=(), **options):
    torch.manual_seed(0)
    settings = {"max_epochs": 4, "lr": 0.1, "batch_size": 64, "iterator_train__shuffle": True, "verbose": 0}
    return kind(module, callbacks=list(callbacks), **{**settings, **options}).fit(X, y)


def report_of(**options):
    callback = diagnostics.SkorchCallback(every=1, quiet=True)
    fitted(callbacks=[callback], **options)
    return callback.report()


def test_a_healthy_fit_gets_a_clean_report_and_the_same_bits():
    plain, callback = fitted(), diagnostics.SkorchCallback(every=1, quiet=True)
    net = fitted(callbacks=[callback])
    weights = zip(plain.module_.parameters(), net.module_.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)
    assert plain.history[:, "train_loss"] == net.history[:, "train_loss"]
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.module_.modules())
    report = callback.report()
    assert report.ok, report
    assert report.faults == ()
    assert report.title == "watched 32 steps of Module in a NeuralNetClassifier"
    assert len(report.history.evaluations.losses) == 4


def test_losses_and_gradients_are_those_of_their_step():
    losses, norms = [], []

    class Kept(diagnostics.SkorchCallback):
        def on_grad_computed(self, net, named_parameters, **given):
            norms.append(torch.stack([p.grad.norm() for _, p in named_parameters]).norm().item())

        def on_batch_end(self, net, batch=None, training=None, **step):
            super().on_batch_end(net, batch, training, **step)
            if training:
                losses.append(step["loss"].item())

    callback = Kept(every=1, quiet=True)
    fitted(callbacks=[callback])
    history = callback.report().history
    np.testing.assert_allclose(history.losses.values, losses, rtol=1e-6)
    np.testing.assert_allclose(history.gradients.norms, norms, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"kind": OfTheHeadOnly}, "optimizer-misses-parameters"),
        ({"module": WithoutGradient}, "unchanged-parameters"),
        ({"lr": 0.0}, "unchanged-parameters"),
    ],
)
def test_a_broken_fit_is_named(options, rule):
    report = report_of(**options).as_dict()
    assert rule in set(named(report["findings"])), told(report)


def test_a_clone_a_copy_and_a_grid_search_work_as_without_it():
    net = fitted(callbacks=[diagnostics.SkorchCallback(every=3, quiet=True)])
    cloned = clone(net)
    assert cloned.callbacks[0].every == 3
    assert cloned.callbacks[0].report().title == "watched nothing: training has not begun"
    again = pickle.loads(pickle.dumps(net))
    assert (again.predict(X[:8]) == net.predict(X[:8])).all()
    search = GridSearchCV(clone(net), {"lr": [0.05, 0.1]}, cv=2, refit=True).fit(X, y)
    assert search.best_score_ > 0.4


def test_a_bad_fit_is_told_on_stderr(capsys):
    fitted(callbacks=[diagnostics.SkorchCallback()], lr=0.0)
    assert "unchanged-parameters" in capsys.readouterr().err


def test_a_regressor_is_watched_as_well():
    callback = diagnostics.SkorchCallback(every=1, quiet=True)
    torch.manual_seed(0)
    net = NeuralNetRegressor(nn.Linear, module__in_features=20, module__out_features=1, max_epochs=3, lr=0.01)
    net.set_params(callbacks=[callback], verbose=0).fit(
        X, (X @ np.linspace(-1, 1, 20))[:, None].astype(np.float32)
    )
    assert callback.report().title.endswith("of Linear in a NeuralNetRegressor")
    assert callback.report().faults == ()


def test_a_wrong_argument_is_told():
    with pytest.raises(diagnostics.InvalidInput, match=r"SkorchCallback\(\) was given every=0"):
        diagnostics.SkorchCallback(every=0)
