import math

import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.metrics.running_statistics import batch_norm_facts
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


def test_says_nothing_of_layers_that_counted_no_batch():
    model = nn.Sequential(nn.BatchNorm1d(8, momentum=0), nn.Linear(8, 3))
    assert batch_norm_facts(model) is None
    model.eval()(torch.zeros(4, 8))
    assert batch_norm_facts(model) is None
    assert batch_norm_facts(nn.Linear(2, 2)) is None
