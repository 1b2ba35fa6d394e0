from diagnostics.facts.loss import SelfPairs
from diagnostics.rules.model.loss.self_pairs_in_loss import SelfPairsInLoss

RULE = SelfPairsInLoss()


def test_fires_where_each_row_counts_as_a_negative_of_itself():
    finding = RULE.from_scores(SelfPairs(32, 2.0, 1.0))
    assert (finding.rule, finding.severity) == ("self-pairs-in-loss", "warning")


def test_silent_where_a_row_is_its_own_target():
    assert RULE.from_scores(SelfPairs(32, 2.0, 0.5)) is None
