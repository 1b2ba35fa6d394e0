"""Losses that are heard whichever way a script calls them, and a script that cannot tell that they are."""

import inspect
import pickle
import traceback

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import cross_entropy as bound_early

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.collectors.pytorch.discover.loss_calls import LossRecorder, unflattened
from diagnostics.facts.loss_contracts import TORCH

SCORES = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5], [0.0, 0.3, 0.1], [2.0, 1.0, 0.0]]).requires_grad_()
LABELS = torch.tensor([2, 0, 0, 1])
ONE, VALUES = SCORES[:, :1], torch.tensor([0.5, 1.0, -2.0, 3.0])
BINARY = torch.tensor([[1.0], [0.0], [1.0], [1.0]])


@pytest.fixture
def calls():
    faults = []
    made = LossRecorder(lambda call: None, FaultGuard(on_fault=faults.append))
    made.open(lambda: True)
    yield made
    made.close()
    assert faults == []


def heard(calls):
    (call,) = calls.heard
    return call


@pytest.mark.parametrize("name", TORCH)
def test_a_contract_names_what_pytorch_has(name):
    contract = TORCH[name]
    parameters = list(inspect.signature(getattr(F, name)).parameters)
    assert contract.prediction == parameters[0]
    assert contract.target is None or contract.target in parameters
    assert issubclass(getattr(nn, contract.module), nn.Module)


class TestHeard:
    @pytest.mark.parametrize(
        "compute",
        [
            lambda: F.cross_entropy(SCORES, LABELS),
            lambda: bound_early(SCORES, LABELS),
            lambda: nn.CrossEntropyLoss()(SCORES, LABELS),
            lambda: F.cross_entropy(input=SCORES, target=LABELS),
        ],
        ids=["function", "imported by name", "module", "by keyword"],
    )
    def test_whichever_way_it_is_called(self, calls, compute):
        loss = compute()
        call = heard(calls)
        assert call.name == "cross_entropy"
        assert call.prediction.equal(SCORES)
        assert call.target.equal(LABELS)
        assert call.source() is SCORES
        assert (call.result(), call.value) == (loss, loss.detach())

    def test_not_where_nothing_is_learned_of_it(self, calls):
        with torch.no_grad():
            F.cross_entropy(SCORES, LABELS)
        F.mse_loss(torch.ones(3), torch.zeros(3))
        assert calls.heard == []

    def test_not_where_it_is_nobodys_business(self):
        calls = LossRecorder(lambda call: None, FaultGuard())
        calls.open(lambda: False)
        F.cross_entropy(SCORES, LABELS)
        assert calls.heard == []
        calls.close()

    def test_before_it_fails(self):
        seen = []
        calls = LossRecorder(lambda call: seen.append(call.labels_outside()), FaultGuard())
        calls.open(lambda: True)
        with pytest.raises(IndexError, match="Target 3 is out of bounds"):
            F.cross_entropy(SCORES, LABELS + 1)
        calls.close()
        assert seen == [True]

    def test_no_graph_is_kept_alive(self, calls):
        scores = SCORES * 2
        F.cross_entropy(scores, LABELS)
        call = heard(calls)
        assert (call.prediction.grad_fn, call.value.grad_fn, call.result()) == (None, None, None)


class TestRecognised:
    def test_cross_entropy(self, calls):
        F.cross_entropy(SCORES, LABELS, reduction="sum", label_smoothing=0.1)
        found = heard(calls).recognised()
        assert (found.kind, found.num_classes, found.reads) == ("cross_entropy", 3, "logits")
        assert not found.class_weights
        assert found.floor == pytest.approx(4 * 1.0507, abs=1e-3)

    def test_class_weights(self, calls):
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))(SCORES, LABELS)
        found = heard(calls).recognised()
        assert (found.class_weights, found.weights) == (True, (1.0, 2.0, 3.0))

    def test_log_probabilities(self, calls):
        F.nll_loss(SCORES.log_softmax(1), LABELS)
        assert heard(calls).recognised().reads == "log_probabilities"

    def test_logits_and_probabilities_of_two_classes(self, calls):
        F.binary_cross_entropy_with_logits(ONE, BINARY)
        F.binary_cross_entropy(ONE.sigmoid(), BINARY)
        kinds = [(call.recognised().kind, call.recognised().reads) for call in calls.heard]
        assert kinds == [("binary_cross_entropy", "logits"), ("binary_cross_entropy", "probabilities")]

    def test_a_loss_that_weighs_its_terms_has_no_floor_that_is_known(self, calls):
        F.binary_cross_entropy_with_logits(ONE, BINARY, pos_weight=torch.tensor([3.0]))
        found = heard(calls).recognised()
        assert (found.kind, found.floor, found.reads) == ("other", None, "logits")

    def test_terms_that_are_averaged_by_hand_have_none_either(self, calls):
        F.cross_entropy(SCORES, LABELS, reduction="none")
        found = heard(calls).recognised()
        assert (found.kind, found.num_classes, found.reads) == ("other", 3, "logits")

    def test_the_true_pair_among_others_is_no_class(self, calls):
        similar = torch.eye(4).requires_grad_() * 10
        F.cross_entropy(similar, torch.arange(4))
        assert heard(calls).recognised().kind == "other"

    def test_zeros_are_places_of_true_pairs_unless_they_are_known_to_be_classes(self, calls):
        F.cross_entropy(SCORES, torch.zeros(4, dtype=torch.int64))
        call = heard(calls)
        assert (call.recognised().kind, call.recognised(of_classes=True).kind) == ("other", "cross_entropy")

    @pytest.mark.parametrize("compute", [F.cross_entropy, nn.CrossEntropyLoss(label_smoothing=0.1)])
    def test_shares_of_classes_as_mixup_and_teachers_give_them_are_no_class_indices(self, calls, compute):
        shares = torch.tensor([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0]])
        compute(SCORES, shares)
        found = heard(calls).recognised()
        assert (found.kind, found.num_classes, found.reads) == ("other", None, "logits")

    @pytest.mark.filterwarnings("ignore:Using a target size")
    @pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
    def test_stretched_shapes(self, calls, loss):
        loss(ONE, VALUES)
        assert heard(calls).recognised().broadcast

    @pytest.mark.filterwarnings("ignore:Using a target size")
    def test_all_pairs_of_quantiles_are_not_stretched(self, calls):
        F.smooth_l1_loss(SCORES.unsqueeze(2), torch.zeros(4, 1, 3), reduction="none")
        assert not heard(calls).recognised().broadcast

    @pytest.mark.filterwarnings("ignore:Using a target size")
    def test_terms_kept_apart_are_stretched_where_an_axis_is_missing(self, calls):
        F.mse_loss(ONE, VALUES, reduction="none")
        assert heard(calls).recognised().broadcast

    @pytest.mark.filterwarnings("ignore:Using a target size")
    @pytest.mark.parametrize("target", [VALUES[:, None], torch.tensor(1.0), torch.ones(1, 1)])
    def test_one_target_for_all_is_not_stretched(self, calls, target):
        F.mse_loss(ONE, target)
        assert not heard(calls).recognised().broadcast


class TestFacts:
    def test_arguments_options_and_what_made_the_prediction(self, calls):
        raw = torch.zeros(4, 1, requires_grad=True)
        F.poisson_nll_loss(F.softplus(raw), torch.ones(4, 1), False)
        fact = calls.other.fact()
        assert (fact.function, fact.made_by, fact.options) == (
            "poisson_nll_loss",
            "softplus",
            {"log_input": False},
        )
        assert fact.target.values.tolist() == [[1.0]] * 4

    def test_lengths_in_tuples_are_arguments(self, calls):
        frames = torch.zeros(6, 2, 5).log_softmax(-1).bfloat16().requires_grad_()
        F.ctc_loss(frames.float(), torch.tensor([[1, 2], [3, 4]]), (6, 6), (2, 2), 4)
        fact = calls.other.fact()
        assert [fact.complete(f"{name}_lengths").tolist() for name in ("input", "target")] == [[6, 6], [2, 2]]
        assert (fact.prediction.shape, fact.options) == ((6, 2, 5), {"blank": 4})

    def test_the_margin_of_a_loss_of_triplets(self, calls):
        nn.TripletMarginLoss(margin=0.5)(SCORES, SCORES, SCORES)
        assert calls.other.fact().options["margin"] == 0.5

    def test_the_value_and_the_weights_of_a_common_loss(self, calls):
        loss = F.cross_entropy(SCORES, LABELS, weight=torch.ones(3))
        fact = heard(calls).fact(whole=True)
        assert (fact.value, fact.whole, fact.weighted) == (loss.item(), True, True)
        assert fact.complete("target").tolist() == LABELS.tolist()

    def test_the_first_rows_and_the_ends_of_a_large_prediction(self, calls):
        large = torch.zeros(2**19, 3)
        large[-1, 0] = 7
        F.mse_loss(large.requires_grad_(), torch.zeros(2**19, 3))
        given = heard(calls).fact().prediction
        assert (given.shape, given.values.size <= 2**20) == ((2**19, 3), True)
        assert (*given.ends, heard(calls).fact().complete("input")) == (0, 7, None)


class TestUnflattened:
    SCORES, LABELS = torch.zeros(9, 8, 4), torch.zeros(8, 9, dtype=torch.long)

    def test_the_shapes_before(self, calls):
        scores = self.SCORES.clone().requires_grad_()
        F.cross_entropy(scores.view(-1, 4), self.LABELS.reshape(-1))
        assert heard(calls).fact().target.unflattened == (8, 9)
        assert unflattened(heard(calls).prediction, scores) == (9, 8, 4)

    def test_nothing_where_an_axis_was_moved(self):
        moved = self.LABELS.T.reshape(-1)
        assert unflattened(moved, self.LABELS) is None
        assert unflattened(self.SCORES.transpose(0, 1).reshape(-1, 4), self.SCORES) is None

    def test_nothing_of_the_same_shape(self):
        assert unflattened(self.LABELS, self.LABELS) is None


class TestFunctions:
    def test_stay_the_objects_that_they_are(self, calls):
        assert pickle.loads(pickle.dumps(F.cross_entropy)) is bound_early
        assert list(inspect.signature(F.cross_entropy).parameters)[:3] == ["input", "target", "weight"]

    def test_get_their_own_code_back(self):
        before = (F.cross_entropy.__code__, dict(vars(F.cross_entropy)))
        calls = LossRecorder(lambda call: None, FaultGuard())
        calls.open(lambda: True)
        assert F.cross_entropy.__code__ is not before[0]
        calls.close()
        assert (F.cross_entropy.__code__, vars(F.cross_entropy)) == before

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_can_be_scripted_meanwhile(self, calls):
        scripted = torch.jit.script(nn.CrossEntropyLoss())
        assert scripted(SCORES, LABELS).equal(F.cross_entropy(SCORES, LABELS))

    @pytest.mark.slow
    @pytest.mark.parametrize("backend", ["eager", "aot_eager"])
    def test_can_be_compiled_meanwhile_and_run_on(self, calls, backend):
        @torch.compile(backend=backend)
        def compute(scores, labels):
            return F.cross_entropy(scores, labels)

        expected = F.cross_entropy(SCORES, LABELS).item()
        assert compute(SCORES, LABELS).item() == expected
        calls.close()
        assert compute(SCORES, LABELS).item() == expected

    def test_raise_what_they_raise_from_one_frame_more(self, calls):
        with pytest.raises(IndexError) as raised:
            F.cross_entropy(SCORES, LABELS + 1)
        frames = [(frame.name, frame.filename) for frame in traceback.extract_tb(raised.tb)][1:]
        assert frames[0] == ("cross_entropy", FROZEN)
        assert [name for name, _ in frames] == ["cross_entropy", "cross_entropy"]

    def test_warn_of_the_line_that_called_them(self, calls):
        with pytest.warns(UserWarning, match="Using a target size") as warned:
            F.mse_loss(ONE, VALUES)
        assert [entry.filename for entry in warned] == [__file__]

    def test_hear_no_fault_of_the_listener(self):
        faults = []

        def broken(call):
            raise ZeroDivisionError("on purpose")

        calls = LossRecorder(broken, FaultGuard(on_fault=faults.append))
        calls.open(lambda: True)
        loss = F.cross_entropy(SCORES, LABELS)
        calls.close()
        assert loss.equal(F.cross_entropy(SCORES, LABELS))
        assert [str(fault) for fault in faults] == ["on purpose"]


class TestSwapped:
    PROBABILITIES = SCORES.sigmoid()

    @pytest.mark.parametrize(
        "compute",
        [
            lambda given, made: F.binary_cross_entropy(given, made),
            lambda given, made: F.binary_cross_entropy_with_logits(given, made),
            lambda given, made: nn.CrossEntropyLoss()(given, made.softmax(1)),
        ],
    )
    def test_a_target_that_alone_depends_on_the_model(self, calls, compute):
        loss = compute(torch.rand(4, 3), self.PROBABILITIES)
        assert calls.heard == []
        assert calls.other.swapped
        assert calls.other.result() is loss
        assert calls.other.fact().swapped

    @pytest.mark.parametrize(
        "compute",
        [
            lambda made: F.mse_loss(torch.rand(4, 3), made),  # the same in both orders
            lambda made: F.kl_div(torch.rand(4, 3).log_softmax(1), made.softmax(1)),  # may be meant
            lambda made: F.binary_cross_entropy(made, made),
            lambda made: F.binary_cross_entropy(made, torch.rand(4, 3)),
        ],
    )
    def test_no_others(self, calls, compute):
        compute(self.PROBABILITIES)
        assert calls.other is None
