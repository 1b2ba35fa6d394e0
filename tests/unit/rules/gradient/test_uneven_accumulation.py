import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.training import LabelWeightFacts
from diagnostics.facts.where import Where
from diagnostics.rules.gradient.uneven_accumulation import UnevenAccumulation

RULE = UnevenAccumulation()
UNEQUAL = [[24, 24, 200, 24], [24, 180, 24, 24], [22, 24, 24, 24], [190, 24, 24, 210], [24, 24, 24, 220]]


def facts(counts, weigh):
    weights = tuple(np.array([weigh(one, passes) for one in passes], float) for passes in counts)
    rows = tuple(np.array(passes) for passes in counts)
    return LabelWeightFacts(np.arange(len(rows)), rows, weights, Where("train.py", 20, "train"))


def mean_of_means(labels, passes):
    return 1 / (len(passes) * labels)


def per_label(labels, passes):
    return 1 / sum(passes)


def test_warns_when_means_over_unequal_counts_are_averaged():
    finding = RULE.from_passes(facts(UNEQUAL, mean_of_means))
    assert (finding.rule, finding.severity) == ("uneven-accumulation", "warning")
    assert finding.evidence["uneven_steps"] == 4
    assert finding.evidence["median_ratio"] > 8
    assert str(finding.where) == "train.py:20 in train"


def test_silent_when_every_label_weighs_the_same():
    assert RULE.from_passes(facts(UNEQUAL, per_label)) is None


def test_silent_on_equal_batches_with_a_smaller_last_one():
    counts = [[32, 32], [32, 32], [32, 32], [32, 5]]
    assert RULE.from_passes(facts(counts, mean_of_means)) is None


def test_silent_on_four_texts_of_ordinary_lengths_in_each_pass():
    drawn = np.random.default_rng(0).lognormal(4, 0.6, (20, 8, 4)).astype(int).sum(-1)
    assert RULE.from_passes(facts(drawn.tolist(), mean_of_means)) is None


def test_warns_of_one_text_of_ordinary_length_in_each_pass():
    drawn = np.random.default_rng(0).lognormal(4, 0.7, (20, 8)).astype(int)
    assert RULE.from_passes(facts(drawn.tolist(), mean_of_means)).severity == "warning"


def test_silent_on_two_batches_whose_sizes_never_change():
    assert RULE.from_passes(facts([[64, 448]] * 8, mean_of_means)) is None


def test_not_applicable_to_three_steps():
    with pytest.raises(NotApplicable):
        RULE.from_passes(facts(UNEQUAL[:3], mean_of_means))
