"""What the arguments of a loss show: blanks, lengths, rates, axes of shares, and orders of flattened sequences."""

import torch
import torch.nn.functional as F

from diagnostics.collectors.pytorch.discover.loss_arguments import OtherCall, flattened, shares
from diagnostics.facts.loss import AlignedScores, AlignedTargets, FlattenedPair, LogRates

FRAMES = torch.zeros(6, 2, 5).log_softmax(-1)


def facts(name, *arguments, **options):
    fact, *_ = OtherCall.of(name, arguments, options).facts()
    return fact


def scores(log_probs):
    """Return what `ctc_loss` is told of its first argument."""
    arguments = log_probs, torch.tensor([[1, 2], [3, 4]]), (6, 6), (2, 2)
    return [fact for fact in OtherCall.of("ctc_loss", arguments, {}).facts() if isinstance(fact, AlignedScores)]


class TestAligned:
    def test_padding_beyond_the_lengths_is_no_blank(self):
        targets = torch.tensor([[1, 2, 0], [3, 3, 4]])
        fact = facts("ctc_loss", FRAMES, targets, torch.tensor([6, 6]), torch.tensor([2, 3]))
        assert fact == AlignedTargets(2, blank=0, with_blank=0, too_short=0, frames=6, labels=3)

    def test_targets_in_one_row_are_cut_by_their_lengths(self):
        fact = facts("ctc_loss", FRAMES, torch.tensor([1, 0, 3, 3, 4]), (6, 3), (2, 3), blank=0)
        assert fact == AlignedTargets(2, blank=0, with_blank=1, too_short=1, frames=3, labels=3)

    def test_another_blank(self):
        fact = facts("ctc_loss", FRAMES, torch.tensor([[0, 1], [4, 2]]), (6, 6), (2, 2), 4)
        assert (fact.blank, fact.with_blank) == (4, 1)


class TestScores:
    RAW = torch.randn(6, 2, 5, generator=torch.Generator().manual_seed(0))

    def test_log_probabilities_of_any_type(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            (fact,) = scores(self.RAW.log_softmax(-1).to(dtype))
            assert fact.made == "log_probabilities"

    def test_classes_that_a_mask_leaves_out(self):
        masked = self.RAW.clone()
        masked[..., 4] = -torch.inf
        (fact,) = scores(masked.log_softmax(-1))
        assert (fact.made, fact.lowest > -20) == ("log_probabilities", True)

    def test_raw_scores_and_probabilities(self):
        assert scores(self.RAW) == [AlignedScores(float(self.RAW.min()), float(self.RAW.max()), "scores")]
        assert scores(self.RAW.softmax(-1))[0].made == "probabilities"
        assert scores(self.RAW.log_softmax(0))[0].made == "scores"

    def test_nothing_of_numbers_that_are_none(self):
        assert scores(torch.full((6, 2, 5), torch.nan)) == scores(torch.full((6, 2, 5), torch.inf)) == []


class TestRates:
    def test_the_function_that_made_them(self):
        raw = torch.zeros(4, 1, requires_grad=True)
        assert facts("poisson_nll_loss", F.softplus(raw), torch.ones(4, 1)) == LogRates("softplus", 1.0)
        assert facts("poisson_nll_loss", raw.exp(), torch.ones(4, 1)).made_by == "exp"

    def test_nothing_of_a_loss_that_reads_rates(self):
        call = OtherCall.of("poisson_nll_loss", (torch.ones(4), torch.ones(4), False), {})
        assert list(call.facts()) == []


class TestShares:
    def test_classes_last(self):
        targets = F.one_hot(torch.randint(0, 5, (4, 7), generator=torch.Generator().manual_seed(0)), 5).float()
        (fact,) = shares(torch.zeros(4, 7, 5), targets)
        assert (fact.one_by_last, fact.one_by_class < 0.5) == (1.0, True)
        (fact,) = shares(torch.zeros(4, 5, 7), targets.movedim(-1, 1))
        assert fact.one_by_class == 1.0

    def test_several_labels(self):
        (fact,) = shares(torch.zeros(2, 3), torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
        assert (fact.several, fact.one_by_class) == (0.5, 0.0)
        (fact,) = shares(torch.zeros(2, 3), torch.tensor([[3.0, 1.0, 0.0], [0.0, 2.0, 5.0]]))
        assert fact.several == 0.0


class TestFlattened:
    def test_tells_both_shapes(self):
        scores, labels = torch.zeros(9, 8, 4), torch.zeros(8, 9, dtype=torch.long)
        assert flattened(scores, scores.view(-1, 4), labels.reshape(-1), labels) == FlattenedPair(
            (9, 8, 4), (8, 9)
        )

    def test_nothing_where_an_axis_was_moved(self):
        scores, labels = torch.zeros(9, 8, 4), torch.zeros(8, 9, dtype=torch.long)
        moved = labels.T.reshape(-1)
        assert flattened(scores, scores.view(-1, 4), moved, moved._base) is None
        assert flattened(scores, scores.transpose(0, 1).reshape(-1, 4), labels.view(-1), labels) is None
