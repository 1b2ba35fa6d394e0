import dataclasses

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.metrics import Evaluation, MetricCall, MetricLedger, MetricState
from diagnostics.facts.where import Where
from diagnostics.facts.written import ComparedPairs, WrittenPatterns
from diagnostics.rules.evaluation.metric_on_logits import MetricOnLogits
from diagnostics.rules.evaluation.misreported_metric import MisreportedMetric
from diagnostics.rules.shared.metric_values import class_values, number_values

RULE, ON_LOGITS = MisreportedMetric(), MetricOnLogits()
RNG = np.random.default_rng(0)
BATCHES = (32,) * 9 + (12,)
LABELS = (RNG.random(300) < 0.2).astype(np.int64)
LOGITS = (2 * LABELS - 1 + 1.2 * RNG.normal(size=300)).astype(np.float32)  # of class 1
SCORES = np.stack([-LOGITS, LOGITS], axis=1)
RARE = (RNG.random(300) < 0.07).astype(np.int64)
RARE_SCORES = np.stack([2 + 0.9 * RNG.normal(size=300), 3.0 * RARE], axis=1).astype(np.float32)
FOUND = RARE_SCORES.argmax(axis=1)
CLASSES = RNG.integers(5, size=300)
OUTPUTS = (np.eye(5)[CLASSES] + 0.6 * RNG.normal(size=(300, 5))).astype(np.float32)
PRICES = (RNG.normal(size=300) * 3 + 7).astype(np.float32)
GUESSES = (0.6 * PRICES + 2.5 + RNG.normal(size=300)).astype(np.float32)


def accuracy(answers, labels):
    return float((answers == labels).mean())


def split(values, batches=BATCHES):
    return np.split(values, np.cumsum(batches)[:-1])


def mean_over_batches(value, answers, labels):
    return float(np.mean([value(a, t) for a, t in zip(split(answers), split(labels), strict=True)]))


def f1(answers, labels):
    return class_values("f1", answers, labels)["binary"]


def found(outputs, targets, rule=RULE, batches=BATCHES, **reported):
    options = {name: reported.pop(name) for name in ("reads", "causal", "pad", "loss") if name in reported}
    evaluation = Evaluation(outputs, targets, reported, batches=batches, **options)
    return rule.from_evaluations(MetricLedger(evaluations=(evaluation,)))


def mistake(*arguments, **options):
    finding = found(*arguments, **options)
    return finding and (finding.severity, finding.evidence["mistake"])


def test_names_a_mean_of_the_f1_of_batches():
    reported = mean_over_batches(f1, FOUND, RARE)
    finding = found(RARE_SCORES, RARE, f1=reported)
    assert finding.severity == "warning"
    assert finding.evidence["mistake"] == "batches"
    assert finding.evidence["recomputed"] == pytest.approx(f1(FOUND, RARE))


def test_names_a_mean_of_the_r2_of_batches():
    def r2(answers, labels):
        return number_values("r2", answers.astype(float), labels.astype(float))["all"]

    def reported(size):
        parts = range(0, 300, size)
        return float(np.mean([r2(GUESSES[start : start + size], PRICES[start : start + size]) for start in parts]))

    small, large = (6,) * 50, (100,) * 3
    assert mistake(GUESSES[:, None], PRICES, r_square=reported(6), batches=small) == ("warning", "batches")
    assert mistake(GUESSES[:, None], PRICES, r_square=reported(100), batches=large) is None  # hardly differs
    assert mistake(GUESSES[:, None], PRICES, r_square=r2(GUESSES, PRICES)) is None


def test_names_labels_that_were_not_shifted():
    tokens = RNG.integers(30, size=(20, 12))
    predicted = np.where(RNG.random((20, 12)) < 0.7, np.roll(tokens, -1, axis=1), 0)
    unshifted = float((predicted == tokens).mean())
    options = {"causal": True, "batches": ()}
    assert mistake(predicted, tokens, accuracy=unshifted, **options) == ("warning", "not shifted")
    for name in ("token_accuracy", "eval_mean_token_accuracy", "masked_accuracy"):
        assert mistake(predicted, tokens, **options, **{name: unshifted}) == ("warning", "not shifted")
    assert mistake(predicted, tokens, **options, sequence_accuracy=unshifted) is None
    assert mistake(predicted, tokens, accuracy=unshifted, batches=()) is None  # no causal model
    shifted = float((predicted[:, :-1] == tokens[:, 1:]).mean())
    assert mistake(predicted, tokens, accuracy=shifted, **options) is None


def test_names_ignored_positions_that_were_counted():
    labels = np.where(np.arange(12) < 5, RNG.integers(1, 5, size=(40, 12)), -100)
    predicted = np.where(RNG.random((40, 12)) < 0.8, labels, 0)
    predicted[labels < 0] = 2
    counted = labels >= 0
    right = float((predicted == labels)[counted].mean())
    assert mistake(predicted, labels, accuracy=right, batches=()) is None
    divided = float((predicted == labels).mean())
    assert mistake(predicted, labels, accuracy=divided, batches=()) == ("warning", "ignored counted")


def test_names_swapped_precision_and_recall():
    answers = SCORES.argmax(axis=1)
    precision, recall = (class_values(name, answers, LABELS)["binary"] for name in ("precision", "recall"))
    assert abs(precision - recall) > 0.05
    assert mistake(SCORES, LABELS, precision=recall) == ("warning", "swapped")
    assert mistake(SCORES, LABELS, precision=precision, recall=recall) is None


def test_names_swapped_targets_of_r2():
    swapped = number_values("r2", PRICES.astype(float), GUESSES.astype(float))["all"]
    assert mistake(GUESSES, PRICES, r2=swapped) == ("warning", "swapped")


def test_names_a_squared_error_called_its_root():
    squared = float(np.square(GUESSES - PRICES).mean())
    assert mistake(GUESSES, PRICES, rmse=squared) == ("warning", "no root")
    assert mistake(GUESSES, PRICES, rmse=squared**0.5, mse=squared) is None
    assert mistake(GUESSES, PRICES, rmse=1000 * squared**0.5) is None  # in another unit


def test_names_errors_between_all_pairs():
    wrong = float(np.abs(GUESSES[:, None] - PRICES).mean())
    assert mistake(GUESSES[:, None], PRICES, mae=wrong) == ("warning", "broadcast")


def test_names_a_perplexity_to_the_base_of_two():
    assert mistake(OUTPUTS, CLASSES, loss=3.0, perplexity=8.0) == ("warning", "base")
    assert mistake(OUTPUTS, CLASSES, loss=3.0, perplexity=float(np.exp(3.0))) is None


@pytest.mark.parametrize("rounded", [False, True])
def test_names_logits_taken_for_probabilities(rounded):
    wrong = np.round(LOGITS).astype(int) if rounded else (LOGITS > 0.5).astype(int)
    reported = accuracy(wrong, LABELS)
    finding = found(LOGITS[:, None], LABELS, ON_LOGITS, reads="logits", binary_accuracy=reported)
    assert finding.severity == "warning"
    assert finding.evidence["recomputed"] == pytest.approx(accuracy(LOGITS > 0, LABELS))
    assert found(LOGITS[:, None], LABELS, ON_LOGITS, reads="logits", accuracy=accuracy(LOGITS > 0, LABELS)) is None
    assert found(LOGITS[:, None], LABELS, ON_LOGITS, accuracy=accuracy(LOGITS > 0.5, LABELS)) is None


def test_names_an_accuracy_of_each_output():
    outputs, classes = OUTPUTS[:280], CLASSES[:280]
    probabilities, one_hot = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True), np.eye(5)[classes]
    of_each = float(((probabilities > 0.5) == one_hot).mean())
    for targets in (classes, one_hot):
        finding = found(probabilities, targets, ON_LOGITS, accuracy=of_each)
        assert finding.severity == "warning"
        assert finding.evidence["recomputed"] == pytest.approx(accuracy(outputs.argmax(axis=1), classes))


def test_notes_an_accuracy_that_nothing_explains():
    assert mistake(OUTPUTS, CLASSES, accuracy=0.314159) == ("note", None)
    assert mistake(OUTPUTS, CLASSES, accuracy=accuracy(OUTPUTS.argmax(axis=1), CLASSES) - 0.015) is None


@pytest.mark.parametrize(
    "value",
    [
        accuracy(OUTPUTS.argmax(axis=1), CLASSES),
        round(100 * accuracy(OUTPUTS.argmax(axis=1), CLASSES), 1),
        class_values("recall", OUTPUTS.argmax(axis=1), CLASSES)["macro"],
        float((np.argsort(-OUTPUTS)[:, :3] == CLASSES[:, None]).any(axis=1).mean()),
    ],
    ids=["plain", "in percent, rounded", "balanced", "of the best three"],
)
def test_silent_on_whatever_is_called_accuracy(value):
    assert found(OUTPUTS, CLASSES, accuracy=value) is None


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
def test_silent_on_each_way_of_averaging(average):
    answers = OUTPUTS.argmax(axis=1)
    for name in ("f1", "precision", "recall", "iou"):
        assert found(OUTPUTS, CLASSES, **{name: class_values(name, answers, CLASSES)[average]}) is None


def test_silent_on_a_metric_of_ones_own():
    for name in ("f1", "r2", "rmse", "precision", "perplexity", "score", "auc"):
        assert found(OUTPUTS, CLASSES, **{name: 0.314159}) is None


def test_a_mistake_must_give_the_number_of_each_evaluation():
    wrong, right = mean_over_batches(f1, FOUND, RARE), f1(FOUND, RARE)
    first = Evaluation(RARE_SCORES, RARE, {"f1": wrong}, batches=BATCHES)
    for other in (right, 0.123456):
        second = dataclasses.replace(first, reported={"f1": other})
        assert RULE.from_evaluations(MetricLedger(evaluations=(first, second))) is None
    assert RULE.from_evaluations(MetricLedger(evaluations=(first, first))) is not None


# --- calls of a metric from one line -----------------------------------------------------------------------------


def in_batches(labels, answers, passes=1, step=7, metric="f1_score", average="binary"):
    pairs = zip(split(labels), split(answers), strict=True)
    return tuple(MetricCall(metric, *pair, average, passes=passes, step=step) for pair in pairs)


def of_series(*series):
    return RULE.from_calls(MetricLedger(series=series))


def test_names_a_metric_of_each_batch():
    finding = of_series(in_batches(RARE, FOUND))
    assert finding.severity == "warning"
    assert finding.evidence["mean"] == pytest.approx(mean_over_batches(f1, FOUND, RARE))
    assert finding.evidence["recomputed"] == pytest.approx(f1(FOUND, RARE))


@pytest.mark.parametrize(
    "calls",
    [
        in_batches(RARE, FOUND, passes=0),  # folds or classes of one evaluation
        in_batches(RARE, FOUND, metric="accuracy_score", average=None),
        in_batches(LABELS, LABELS),
        tuple(dataclasses.replace(c, step=n) for n, c in enumerate(in_batches(RARE, FOUND))),
        tuple(
            MetricCall("f1_score", RARE, t < RARE_SCORES[:, 1], "binary", passes=1) for t in np.linspace(-1, 1, 9)
        ),
    ],
    ids=["without passes", "accuracy", "perfect", "in training", "thresholds"],
)
def test_silent_on_other_calls_in_a_row(calls):
    assert of_series(calls) is None


def epochs(times=3, shuffled=False, same_rows=True):
    truth, answers = np.zeros(0, int), np.zeros(0, int)
    for epoch in range(times):
        labels = RNG.permutation(LABELS) if shuffled else LABELS
        labels = labels if same_rows else RNG.integers(4, size=300)
        truth = np.r_[truth, labels]
        answers = np.r_[answers, np.where(RNG.random(300) < 0.3 + 0.2 * epoch, labels, 1 - labels)]
        yield MetricCall("accuracy_score", truth, answers, step=10 * epoch + 10)


@pytest.mark.parametrize("shuffled", [False, True])
def test_names_lists_that_are_never_emptied(shuffled):
    finding = of_series(tuple(epochs(shuffled=shuffled)))
    assert finding.severity == "warning"
    assert (finding.evidence["rows"], finding.evidence["times"]) == (300, 3)
    assert finding.evidence["reported"] < finding.evidence["recomputed"]


def test_silent_on_a_stream_that_is_scored_so_far():
    assert of_series(tuple(epochs(same_rows=False))) is None


def test_names_targets_passed_as_predictions():
    calls = tuple(
        MetricCall("precision_score", (LOGITS + 0.8 * step > 0).astype(int), LABELS, "binary", step=step)
        for step in range(3)
    )
    finding = of_series(calls)
    assert finding.severity == "warning"
    assert finding.evidence["recomputed"] == pytest.approx(
        class_values("precision", (LOGITS + 1.6 > 0).astype(int), LABELS)["binary"]
    )
    right = tuple(dataclasses.replace(one, truth=one.answers, answers=one.truth) for one in calls)
    assert of_series(right) is None
    raters = tuple(dataclasses.replace(one, step=3) for one in calls)
    assert of_series(raters) is None


def called(metric, truth, answers, outputs, average=None, reads=None):
    call = MetricCall(metric, truth, answers, average, outputs=outputs, batches=BATCHES)
    return MetricLedger((call,), reads=reads)


def test_names_targets_of_a_regression_passed_as_predictions():
    finding = RULE.from_evaluations(called("r2_score", GUESSES, PRICES, GUESSES[:, None]))
    assert finding.evidence["mistake"] == "swapped"
    assert RULE.from_evaluations(called("r2_score", PRICES, GUESSES, GUESSES[:, None])) is None


def test_names_logits_compared_with_one_half_before_a_metric():
    half = (LOGITS > 0.5).astype(int)
    ledger = called("f1_score", LABELS, half, LOGITS, "binary", "logits")
    assert ON_LOGITS.from_evaluations(ledger).evidence["metric"] == "f1_score"
    chosen = called("f1_score", LABELS, (LOGITS > 0.3).astype(int), LOGITS, "binary", "logits")
    assert ON_LOGITS.from_evaluations(chosen) is None
    assert RULE.from_evaluations(chosen) is None


def test_needs_an_evaluation_or_calls():
    for check in (RULE.from_evaluations, RULE.from_calls, RULE.from_states, ON_LOGITS.from_evaluations):
        with pytest.raises(NotApplicable):
            check(MetricLedger())


def state(kind="BinaryAccuracy", *, means=(0.5, 0.7, 0.8, 0.9), rows=200, resets=0, **options):
    """Return a metric object to which each epoch adds samples, or which each epoch resets."""
    whole = len(means) * [rows] if resets else rows * np.arange(1, len(means) + 1)
    totals = rows * np.array(means)
    totals = totals if resets else totals.cumsum()
    return MetricState(kind, kind, tuple(map(float, whole)), tuple(map(float, totals)), resets, **options)


def of_states(*states):
    finding = RULE.from_states(MetricLedger(states=states))
    return finding and (finding.severity, finding.evidence["times"], round(finding.evidence["recomputed"], 3))


RESET = state("Mean", means=(0.9, 0.6, 0.5, 0.4), rows=9, resets=4, compares=False, trained=True)


def test_names_an_evaluation_metric_that_is_never_reset():
    assert of_states(state(trained=False)) == ("warning", 4, 0.9)
    assert of_states(state(trained=False), RESET) == ("warning", 4, 0.9)


def test_names_a_training_metric_that_is_never_reset():
    assert of_states(state(trained=True), RESET) == ("warning", 4, 0.9)
    other = state("Mean", rows=9, compares=False, trained=True)  # of another loss
    assert of_states(other, RESET) == ("warning", 4, 0.9)
    assert of_states(state(trained=True), state(means=(0.4, 0.5, 0.6, 0.7), resets=4, trained=False))[0] == "note"


def test_a_mean_of_numbers_alone_is_a_note():
    """It may be that of all episodes."""
    returns = state("Mean", rows=10, compares=False, trained=False)
    assert of_states(returns) == ("note", 4, 0.9)
    assert of_states(returns, RESET)[0] == "warning"


@pytest.mark.parametrize(
    "states",
    [
        [state(resets=4, trained=False)],
        [state(trained=True)],  # during a single epoch
        [state()],
        [state(means=(0.5, 0.9), trained=False)],
        [state(means=(0.8, 0.8, 0.8), trained=False)],
        [
            state("Mean", means=(0.9, 0.6, 0.5, 0.4), rows=9, compares=False, trained=True),
            RESET,
        ],  # of the whole run
        [state("Mean", rows=1, compares=False, trained=False), RESET],  # of one number of each epoch
        [state(means=(0.5, 0.6, 0.7, 0.8, 0.9), trained=True), RESET],  # read more often
        [MetricState("a", "BinaryAccuracy", (200, 500, 600), (100, 400, 480), trained=False)],  # whatever comes
    ],
)
def test_accepts_metrics_that_are_meant_to_add_up(states):
    assert of_states(*states) is None


def pairs(of_pairs, of_rows, rows=250, kinds=2):
    shapes = (rows, 1), (rows,)
    one = ComparedPairs(("pred", "y_test"), shapes, of_pairs, of_rows, kinds, Where("train.py", 40, "<module>"))
    return RULE.from_source(WrittenPatterns(pairs=(one,)))


def test_names_a_comparison_of_every_prediction_with_every_target():
    finding = pairs(0.503, 0.924)
    assert finding.evidence["mistake"] == "broadcast"
    assert finding.evidence["recomputed"] == 0.924
    assert finding.where.line == 40


@pytest.mark.parametrize(
    ("of_pairs", "of_rows", "sizes"),
    [
        (0.5, 1.0, {}),  # labels and the same labels
        (0.5, 0.51, {}),
        (0.5, 0.9, {"rows": 8}),
        (0.001, 0.9, {"kinds": 250}),  # numbers of rows
    ],
)
def test_accepts_pairs_that_are_no_predictions(of_pairs, of_rows, sizes):
    assert pairs(of_pairs, of_rows, **sizes) is None
