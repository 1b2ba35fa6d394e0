from diagnostics.facts.ranks.stall import StalledRank as Stalled
from diagnostics.facts.ranks.stall import StallFacts
from diagnostics.facts.where import Where
from diagnostics.rules.distributed.stalled_rank import StalledRank


def rank(number, collective="", line=31, **more):
    where = Where("train.py", line, "main")
    given = {"inside": "requests/api.py:73 in get", "code": "get(URL)" if not collective else ""}
    return Stalled(number, "node", 7, 12, 1_300.0, 5, collective, where=where, **{**given, **more})


def found(*ranks, world=None):
    return StalledRank().from_stall(StallFacts(world or len(ranks), ranks, 1200.0))


class TestFromStall:
    def test_names_the_rank_that_does_not_come(self):
        finding = found(rank(0, "barrier", 40), rank(1), rank(2, "barrier", 40))
        assert str(finding.where) == "train.py:31 in main"
        assert finding.severity == "warning"

    def test_a_call_that_all_have_made_points_to_the_network(self):
        assert found(rank(0, "barrier", 40), rank(1, "barrier", 40)).severity == "warning"

    def test_ranks_of_other_hosts_may_be_those_that_are_late(self):
        assert found(rank(0, "barrier", 40), rank(1, "barrier", 40), world=4).severity == "warning"

    def test_says_where_all_stand_if_none_waits_for_another(self):
        assert found(rank(0), rank(1)).severity == "warning"

    def test_leaves_different_collectives_to_the_rule_about_them(self):
        assert found(rank(0, "barrier", 40), rank(1, "all_reduce", 31)) is None
