import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.notes import JoinedNotes, RankNotes
from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.facts.where import Where
from diagnostics.rules.distributed.uneven_batches import UnevenBatches

GONE = "RuntimeError: [transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:41512"


def stalled(number, collective, epochs, drawn=0, line=30):
    where = Where("train.py", line, "main")
    return StalledRank(
        number, "node", 7, 12, 1_300.0, 5, collective, where=where, code="x", epochs=epochs, drawn=drawn
    )


def from_stall(*ranks):
    return UnevenBatches().from_stall(StallFacts(len(ranks), ranks, 1_200.0))


def notes(number, batches=0, backward_passes=0, exit_code=0, error="", joined=False):
    return RankNotes(
        number,
        2,
        batches=batches,
        backward_passes=backward_passes,
        exit_code=exit_code,
        error=error,
        joined=joined,
    )


def from_ranks(*ranks):
    return UnevenBatches().from_ranks(JoinedNotes({one.number: one for one in ranks}))


class TestFromStall:
    def test_names_the_rank_that_has_more(self):
        finding = from_stall(stalled(0, "backward", (), 4), stalled(1, "barrier", (3,), line=40))
        assert finding.severity == "error"
        assert finding.evidence == {"batches": {"0": [4], "1": [3]}}
        assert str(finding.where) == "train.py:30 in main"

    def test_an_earlier_epoch_that_nobody_noticed_counts(self):
        assert from_stall(stalled(0, "backward", (5, 5), 3), stalled(1, "barrier", (4, 4, 4))).severity == "error"

    def test_equal_numbers_are_clean(self):
        assert from_stall(stalled(0, "backward", (4,), 2), stalled(1, "barrier", (4,), 2)) is None

    def test_ranks_in_the_same_call_wait_for_the_network(self):
        assert from_stall(stalled(0, "all_reduce", (5,)), stalled(1, "all_reduce", (4,))) is None

    def test_a_rank_that_fewer_have_left_and_that_waits_for_nobody_is_clean(self):
        assert from_stall(stalled(0, "", (5,)), stalled(1, "backward", (4,), 1)) is None

    def test_is_not_applicable_without_loaders(self):
        with pytest.raises(NotApplicable):
            from_stall(stalled(0, "backward", ()), stalled(1, "barrier", ()))


class TestFromRanks:
    def test_names_the_rank_that_ended_and_the_one_that_waited(self):
        assert from_ranks(notes(0, 16, 16, 1, GONE), notes(1, 15, 15)).severity == "error"

    def test_without_a_loader_backward_passes_are_counted(self):
        assert from_ranks(notes(0, 0, 13, 1, GONE), notes(1, 0, 12)).severity == "error"

    def test_equal_numbers_are_clean(self):
        assert from_ranks(notes(0, 15, 15, 1, GONE), notes(1, 15, 15)) is None

    @pytest.mark.parametrize(
        "ranks",
        [
            (notes(0, 16, 16), notes(1, 15, 15)),  # both ended: they may average their weights now and then
            (notes(0, 16, 16, 1, GONE), notes(1, 15, 15, 1, GONE)),
            (notes(0, 16, 16, 1, "ValueError: no such column"), notes(1, 15, 15)),
            (notes(0, 16, 16, 1, GONE, joined=True), notes(1, 15, 15)),
        ],
        ids=["no failure", "both failed", "failed by itself", "join"],
    )
    def test_is_not_applicable_without_a_rank_that_waited_for_one_that_is_done(self, ranks):
        with pytest.raises(NotApplicable):
            from_ranks(*ranks)
