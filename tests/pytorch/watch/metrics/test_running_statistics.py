import math
from types import SimpleNamespace

import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.metrics.modes import RunningStatistics
from diagnostics.facts.layers import BatchNormFacts
from tests.pytorch.watched import run


def test_tells_the_statistics_that_moved_from_those_that_did_not():
    model = nn.Sequential(
        nn.BatchNorm1d(8, momentum=0),
        nn.Linear(8, 16),
        nn.BatchNorm1d(16),
        nn.BatchNorm1d(16, momentum=None),
        nn.Linear(16, 3),
        nn.BatchNorm1d(3, track_running_stats=False),
        nn.BatchNorm1d(3).eval(),
    )
    watch = run(model, 4)
    (facts,) = [fact for fact in watch.course() if isinstance(fact, BatchNormFacts)]
    assert facts.layers == ("0", "2", "3")
    assert facts.momentums[:2].tolist() == [0.0, 0.1]
    assert math.isnan(facts.momentums[2])
    assert facts.untouched.tolist() == [True, False, False]


def seen(model):
    return list(RunningStatistics(SimpleNamespace(model=model)).facts())


def test_says_nothing_of_layers_that_counted_no_batch():
    model = nn.Sequential(nn.BatchNorm1d(8, momentum=0), nn.Linear(8, 3))
    assert seen(model) == []
    model.eval()(torch.zeros(4, 8))
    assert seen(model) == []
    assert seen(nn.Linear(2, 2)) == []
