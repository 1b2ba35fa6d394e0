import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import OrderFit, TargetHistory, Verdicts
from diagnostics.facts.dependence import DependenceFacts, OrderFacts
from diagnostics.facts.pipeline import LossFacts
from diagnostics.facts.training import LossHistory
from diagnostics.rules.model.missing_positions import MissingPositions

RULE = MissingPositions()
LOSS = LossFacts(0.7, "cross_entropy", 0.693)


def judge(
    change=6e-8, ends=0.69, loss=LOSS, by_position=False, trained=True, begins=None, conflicts=0.5, fit=None
):
    order = OrderFacts(change, 0.26, 12, by_position, "encoder.layers.0.self_attn", conflicts, 0.5)
    values = np.linspace(ends if begins is None else begins, ends, 30)
    losses = LossHistory(np.arange(30), values)
    targets = None
    if fit is not None:
        constant = np.full(30, loss.constant_baseline_loss)
        targets = TargetHistory("cross_entropy", np.arange(30), values, constant, 960, 2, order=fit)
    verdicts = Verdicts(frozenset(), frozenset())
    return RULE.from_answers(DependenceFacts(order=order, trained=trained), verdicts, targets, losses, loss)


def test_fires_on_a_model_that_sees_a_set_and_does_not_learn():
    finding = judge()
    assert (finding.rule, finding.severity) == ("missing-positions", "warning")


def test_says_that_the_answers_move_along():
    assert judge(by_position=True).severity == "warning"


def test_is_a_note_where_it_is_not_known_what_was_learned():
    assert judge(loss=None).severity == "note"


def test_is_a_note_where_the_loss_still_falls():
    assert judge(begins=0.693, ends=0.45).severity == "note"
    assert judge(begins=0.693, ends=0.68).severity == "warning"


@pytest.mark.parametrize("given", [{"conflicts": None}, {"conflicts": 0.1}], ids=["not known", "noisy labels"])
def test_is_a_note_where_nothing_shows_that_the_order_matters(given):
    finding = judge(**given)
    assert finding.severity == "note"


@pytest.mark.parametrize(
    ("fit", "severity"),
    [
        (OrderFit(150, 0.48, 0.33, of_classes=True), "warning"),
        (OrderFit(150, 0.48, 0.45, of_classes=True), "note"),
        (OrderFit(20, 0.48, 0.33, of_classes=True), "note"),
        (OrderFit(150, 0.08, 0.30, of_classes=True), "note"),
        (OrderFit(150, 1.0, 0.5, of_classes=False), "warning"),
    ],
    ids=["places tell more", "hardly more", "few rows", "counts tell all", "numbers"],
)
def test_asks_whether_places_tell_more_than_counts(fit, severity):
    assert judge(conflicts=None, fit=fit).severity == severity


@pytest.mark.parametrize("given", [{"ends": 0.1}, {"change": 0.01}], ids=["words are enough", "order counts"])
def test_is_silent(given):
    assert judge(**given) is None


def test_needs_attention_over_tokens_and_the_trained_model():
    verdicts = Verdicts(frozenset(), frozenset())
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(trained=True), verdicts)
    with pytest.raises(NotApplicable):
        judge(trained=False)
