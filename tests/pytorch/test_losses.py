"""Which loss is it? Every loss of PyTorch that the library claims to know, with PyTorch as the oracle."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.collectors.pytorch.losses import class_axis, recognise_loss, unit_scale_loss

GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(12, 4, generator=GENERATOR)
LABELS = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3])
ENTROPY = -sum(p * math.log(p) for p in (6 / 12, 3 / 12, 2 / 12, 1 / 12))  # of those labels, in nats
VALUES = torch.randn(12, 3, generator=GENERATOR)
TARGETS = 2 + 3 * torch.randn(12, 3, generator=GENERATOR)
TAGS = (torch.rand(12, 3, generator=GENERATOR) < 0.3).float()


def recognised(loss_fn, prediction, target, known=True):
    value = loss_fn(prediction, target).item()
    return recognise_loss(value, prediction, target, loss_fn if known else None)


class TestCrossEntropy:
    @pytest.mark.parametrize("known", [True, False], ids=["by type", "by value"])
    @pytest.mark.parametrize(("reduction", "count"), [("mean", 1), ("sum", 12)])
    def test_mean_and_sum(self, known, reduction, count):
        found = recognised(nn.CrossEntropyLoss(reduction=reduction), LOGITS, LABELS, known)
        assert found.kind == "cross_entropy"
        assert found.num_classes == 4
        assert found.floor == pytest.approx(ENTROPY * count)
        assert found.reads == "logits"
        assert not found.class_weights

    def test_the_floor_is_what_the_best_constant_answer_costs(self):
        constant = (LABELS.bincount() / 12).log().expand(12, 4)
        assert recognised(nn.CrossEntropyLoss(), LOGITS, LABELS).floor == pytest.approx(
            F.cross_entropy(constant, LABELS).item()
        )

    def test_ignored_labels_count_neither_in_the_loss_nor_in_its_floor(self):
        labels = LABELS.clone()
        labels[:4] = -100
        kept = LABELS[4:].bincount() / 8
        found = recognised(nn.CrossEntropyLoss(), LOGITS, labels, known=False)
        assert found.floor == pytest.approx(-(kept * kept.log()).sum().item())

    def test_class_weights_are_known_by_the_type(self):
        found = recognised(nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 4.0])), LOGITS, LABELS)
        assert (found.kind, found.class_weights) == ("cross_entropy", True)

    @pytest.mark.parametrize(
        ("labels", "known"),
        [(LABELS, False), (torch.ones(12, dtype=torch.long), None)],
        ids=["mixed", "one class"],
    )
    def test_by_its_value_weights_are_only_known_to_be_none_where_classes_are_mixed(self, labels, known):
        found = recognised(nn.CrossEntropyLoss(), LOGITS, labels, known=False)
        assert (found.kind, found.class_weights) == ("cross_entropy", known)

    def test_the_function_cross_entropy_weighs_no_classes(self):
        assert recognised(F.cross_entropy, LOGITS, torch.ones_like(LABELS)).class_weights is False

    def test_label_smoothing_raises_the_floor(self):
        found = recognised(nn.CrossEntropyLoss(label_smoothing=0.2), LOGITS, LABELS)
        share = 0.8 * LABELS.bincount() / 12 + 0.2 / 4
        assert found.floor == pytest.approx(-(share * share.log()).sum().item())

    @pytest.mark.parametrize(
        ("prediction", "target"),
        [
            (torch.randn(2, 3, 4, 4, generator=GENERATOR), torch.zeros(2, 4, 4, dtype=torch.long)),
            (torch.randn(2, 3, 3, generator=GENERATOR), torch.zeros(2, 3, dtype=torch.long)),
        ],
        ids=["pixels", "as many words as classes"],
    )
    def test_classes_on_the_second_axis(self, prediction, target):
        assert recognised(nn.CrossEntropyLoss(), prediction, target).num_classes == 3

    def test_classes_on_the_last_axis_with_a_loss_of_the_users_own(self):
        logits, labels = torch.randn(2, 6, 5, generator=GENERATOR), torch.randint(5, (2, 6), generator=GENERATOR)
        found = recognised(lambda p, t: F.cross_entropy(p.flatten(0, 1), t.flatten()), logits, labels)
        assert (found.kind, found.num_classes) == ("cross_entropy", 5)

    def test_a_causal_language_model_that_shifts_its_labels(self):
        logits, labels = torch.randn(2, 6, 5, generator=GENERATOR), torch.randint(5, (2, 6), generator=GENERATOR)
        labels[0, :3] = -100

        def shifted(prediction, target):
            return F.cross_entropy(prediction[:, :-1].flatten(0, 1), target[:, 1:].flatten())

        found = recognised(shifted, logits, labels)
        kept = labels[:, 1:][labels[:, 1:] != -100].bincount(minlength=5) / (labels[:, 1:] != -100).sum()
        assert (found.kind, found.num_classes) == ("cross_entropy", 5)
        assert found.floor == pytest.approx(-torch.special.xlogy(kept, kept).sum().item())

    def test_negative_log_likelihood_reads_log_probabilities(self):
        for known in (True, False):
            found = recognised(nn.NLLLoss(), LOGITS, LABELS, known)
            assert (found.kind, found.reads) == ("cross_entropy", "log_probabilities")

    def test_of_log_probabilities_both_readings_give_the_same_so_neither_is_claimed(self):
        found = recognised(lambda p, t: F.nll_loss(p, t), LOGITS.log_softmax(1), LABELS)
        assert (found.kind, found.reads) == ("cross_entropy", None)

    def test_a_single_example_without_a_batch_axis(self):
        found = recognised(nn.CrossEntropyLoss(), LOGITS[0], LABELS[0])
        assert (found.kind, found.num_classes, found.floor) == ("cross_entropy", 4, 0.0)


class TestRegression:
    @pytest.mark.parametrize(("reduction", "count"), [("mean", 1), ("sum", 36)])
    def test_squared_error(self, reduction, count):
        found = recognised(nn.MSELoss(reduction=reduction), VALUES, TARGETS)
        assert found.kind == "mean_squared_error"
        assert found.floor == pytest.approx(TARGETS.var(0, unbiased=False).mean().item() * count, rel=1e-5)

    def test_absolute_error(self):
        found = recognised(nn.L1Loss(), VALUES, TARGETS)
        assert found.kind == "mean_absolute_error"
        middle = TARGETS.sort(0).values[5:7].mean(0)
        assert found.floor == pytest.approx((TARGETS - middle).abs().mean().item(), rel=1e-5)

    def test_a_prediction_that_is_squeezed_before_it_is_compared(self):
        found = recognised(lambda p, t: F.mse_loss(p.squeeze(1), t), VALUES[:, :1], TARGETS[:, 0])
        assert (found.kind, found.broadcast) == ("mean_squared_error", False)

    @pytest.mark.filterwarnings("ignore:Using a target size")
    @pytest.mark.parametrize(
        "loss_fn", [nn.SmoothL1Loss(), F.smooth_l1_loss, nn.HuberLoss(delta=2.0), F.huber_loss]
    )
    def test_a_loss_between_the_two_is_known_to_be_broadcast_and_no_more(self, loss_fn):
        found = recognised(loss_fn, VALUES[:, :1], TARGETS[:, 0])
        assert (found.kind, found.floor, found.broadcast) == ("other", None, True)
        assert not recognised(loss_fn, VALUES[:, :1], TARGETS[:, :1]).broadcast

    def test_a_prediction_that_is_broadcast(self):
        with pytest.warns(UserWarning, match="different to the input size"):
            found = recognised(nn.MSELoss(), VALUES[:, :1], TARGETS[:, 0])
        assert (found.kind, found.broadcast) == ("mean_squared_error", True)

    @pytest.mark.parametrize("kind", ["mean_squared_error", "mean_absolute_error"])
    def test_at_unit_scale_the_best_constant_answer_costs_one(self, kind):
        prices = 3e5 + 8e4 * TARGETS[:, :1]
        centre = torch.zeros(12, 1)
        assert unit_scale_loss(kind, centre, prices).item() == pytest.approx(1, rel=1e-3)


class TestBinaryCrossEntropy:
    @pytest.mark.parametrize(("reduction", "count"), [("mean", 1), ("sum", 36)])
    def test_with_logits(self, reduction, count):
        found = recognised(nn.BCEWithLogitsLoss(reduction=reduction), VALUES, TAGS)
        share = TAGS.mean(0).expand_as(TAGS)
        assert (found.kind, found.reads) == ("binary_cross_entropy", "logits")
        assert found.floor == pytest.approx(F.binary_cross_entropy(share, TAGS).item() * count, rel=1e-5)

    def test_with_probabilities(self):
        found = recognised(nn.BCELoss(), VALUES.sigmoid(), TAGS)
        assert (found.kind, found.reads) == ("binary_cross_entropy", "probabilities")


class TestNotRecognised:
    @pytest.mark.parametrize(
        ("loss_fn", "prediction", "target"),
        [
            (nn.HuberLoss(delta=0.1), VALUES, TARGETS),
            (lambda p, t: F.cross_entropy(p, t) + 0.5, LOGITS, LABELS),
            (lambda p, t: F.cross_entropy(p, t, weight=torch.tensor([1.0, 9.0, 1.0, 9.0])), LOGITS, LABELS),
            (nn.MultiMarginLoss(), LOGITS, LABELS),
            (nn.BCEWithLogitsLoss(pos_weight=torch.tensor(5.0)), VALUES, TAGS),
            (lambda p, t: p.square().mean(), LOGITS, LABELS + 20),
            (lambda p, t: p.square().mean(), LOGITS, torch.full((12,), -100)),
        ],
        ids=["huber", "sum of losses", "hidden weights", "margin", "pos_weight", "identities", "all ignored"],
    )
    def test_another_loss_is_called_other_and_has_no_floor(self, loss_fn, prediction, target):
        found = recognise_loss(loss_fn(prediction, target).item(), prediction, target)
        assert (found.kind, found.floor, found.num_classes) == ("other", None, None)

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_a_loss_that_is_not_finite_is_not_taken_for_another(self, value):
        assert recognise_loss(value, LOGITS, LABELS).kind == "other"

    @pytest.mark.parametrize(
        ("prediction", "target"), [(None, LABELS), (LOGITS, None), ("a", LABELS), (LOGITS, {})]
    )
    def test_what_is_no_tensor(self, prediction, target):
        assert recognise_loss(1.0, prediction, target).kind == "other"


class TestClassAxis:
    @pytest.mark.parametrize(
        ("prediction", "target", "axis"),
        [
            ((8, 3), (8,), 1),
            ((8, 5, 3), (8, 5), 2),
            ((8, 3, 5), (8, 5), 1),
            ((8, 3, 4, 4), (8, 4, 4), 1),
            ((8, 1), (8,), None),
            ((8, 3), (8, 3), None),
            ((8, 3), (4,), None),
        ],
    )
    def test_is_the_one_that_the_target_lacks(self, prediction, target, axis):
        assert class_axis(torch.zeros(prediction), torch.zeros(target, dtype=torch.long)) == axis

    def test_there_is_none_where_the_target_holds_values(self):
        assert class_axis(torch.zeros(8, 3), torch.zeros(8)) is None
