"""What a PyTorch loop gives to scikit-learn's metrics is compared with what its model returned."""

import numpy as np
import pytest
import torch
from sklearn import metrics
from torch.nn.functional import binary_cross_entropy_with_logits

from diagnostics.run.observer import ScriptObserver

NAMES = "misreported-metric", "metric-on-logits"


def found(evaluate, epochs=3):
    """Train and evaluate a model, and return the findings; `evaluate` gets targets and logits of each batch."""
    torch.manual_seed(0)
    rows = torch.randn(1000, 6)
    labels = (rows[:, 0] + 0.5 * rows[:, 1] + 0.4 * torch.randn(1000) > 0.8).float()
    run = ScriptObserver()
    try:
        model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        for _ in range(epochs):
            model.train()
            for place in range(0, 400, 20):
                loss = binary_cross_entropy_with_logits(
                    model(rows[place : place + 20])[:, 0], labels[place : place + 20]
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                evaluate(
                    (labels[place : place + 20], model(rows[place : place + 20])[:, 0])
                    for place in range(400, 1000, 20)
                )
    finally:
        run.close()
    assert run.faults == []
    return [(f.rule, f.severity) for report in run.examined for f in report.findings if f.rule in NAMES]


def together(batches):
    targets, logits = zip(*batches, strict=True)
    return torch.cat(targets).numpy(), torch.cat(logits).numpy()


def test_names_a_metric_of_each_batch():
    def evaluate(batches):
        np.mean([metrics.f1_score(targets.numpy(), logits.numpy() > 0) for targets, logits in batches])

    assert found(evaluate, 6) == [("misreported-metric", "warning")]


def test_names_logits_compared_with_one_half():
    def evaluate(batches):
        targets, logits = together(batches)
        metrics.f1_score(targets, logits > 0.5)

    assert found(evaluate, 10) == [("metric-on-logits", "warning")]


def test_names_lists_that_are_never_emptied():
    all_targets, all_answers = [], []

    def evaluate(batches):
        for targets, logits in batches:
            all_targets.extend(targets.tolist())
            all_answers.extend((logits > 0).float().tolist())
        metrics.accuracy_score(all_targets, all_answers)

    assert found(evaluate) == [("misreported-metric", "warning")]


@pytest.mark.parametrize("cut", [0.0, 0.3])
def test_silent_on_all_rows_at_once(cut):
    def evaluate(batches):
        targets, logits = together(batches)
        metrics.f1_score(targets, logits > cut)
        metrics.precision_score(targets, logits > cut)
        metrics.accuracy_score(targets, logits > cut)

    assert found(evaluate) == []


def test_silent_on_a_search_for_the_best_threshold():
    def evaluate(batches):
        targets, logits = together(batches)
        max(metrics.f1_score(targets, logits > cut) for cut in np.linspace(-2, 2, 21))

    assert found(evaluate) == []
