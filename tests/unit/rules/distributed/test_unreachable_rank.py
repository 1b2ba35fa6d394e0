import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts, KnownFailure
from diagnostics.facts.ranks.network import NetworkFacts, NetworkFailure, RankFacts
from diagnostics.rules.distributed.unreachable_rank import UnreachableRank

YOURS = FrameFacts("train.py", 8, "main", "step(batch)", yours=True)
CRASH = CrashFacts("RuntimeError", "", (YOURS,), live=False)


class TestFromMessage:
    def test_says_what_the_table_says_and_where(self):
        known = KnownFailure(
            "unreachable-rank",
            "Ranks 1 and 0 use the same GPU.",
            ("torch.cuda.set_device(local_rank)", "start no more processes than there are GPUs"),
            "said",
        )
        finding = UnreachableRank().from_message(CRASH, known)
        assert finding.severity == "error"
        assert finding.evidence == {"said": "said"}
        assert str(finding.where) == "train.py:8 in main"

    def test_is_not_applicable_to_a_message_about_something_else(self):
        with pytest.raises(NotApplicable):
            UnreachableRank().from_message(CRASH, KnownFailure("shape-mismatch", "", ("",), ""))


def rank(number, *failures, **more):
    given = {"begun": failures[0].step if failures else "bandwidth", **more}
    return RankFacts(number, f"node-{number}", 10 + number, failures=failures, **given)


def network(*ranks, **more):
    given = {"world": max(2, len(ranks)), "viewpoint": 0, **more}
    return NetworkFacts("torchrun", address="node-0:29500", backend="gloo", limit=5.0, ranks=ranks, **given)


def found(*ranks, **more):
    return UnreachableRank().from_network(network(*ranks, **more))


class TestFromNetwork:
    def test_is_clean_where_all_can_talk(self):
        assert found(rank(0), rank(1)) is None

    def test_names_who_did_not_come(self):
        finding = found(rank(0), world=3, missing=(1, 2))
        assert finding.evidence["missing"] == [1, 2]

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("unresolved", "Name not known"),
            ("refused", ""),
            ("no answer", ""),
            ("elsewhere", ""),
            ("port taken", ""),
            ("not a store", "closed"),
            ("no interface", "GLOO_SOCKET_IFNAME=x, but the host has only lo"),
        ],
    )
    def test_says_what_is_wrong_at_the_rendezvous(self, kind, text):
        assert found(rank(1, NetworkFailure("rendezvous", kind, text)), viewpoint=1).severity == "error"

    def test_two_with_one_number_leave_another_without(self):
        finding = found(rank(0), rank(1), world=3, missing=(2,), claims={1: ("a, process 1", "b, process 2")})
        assert finding.evidence["ranks"] == [1, 2]

    def test_a_rank_that_ended_explains_what_the_others_noticed(self):
        closed = NetworkFailure("all-reduce", "", "RuntimeError: Connection closed by peer")
        assert found(rank(0, closed), rank(1, begun="all-reduce", ending="SIGKILL")).severity == "error"

    def test_names_the_pairs_that_cannot_connect(self):
        failures = [NetworkFailure("connections", "no answer", f"10.0.0.{n}:4242", n) for n in (1, 2)]
        finding = found(rank(0, *failures, interface="eth0 10.0.0.9"), rank(1), rank(2))
        assert finding.evidence["pairs"] == [[0, 1], [0, 2]]

    def test_says_what_the_table_knows_of_the_library_s_message(self):
        known = KnownFailure(
            "unreachable-rank", "Ranks 1 and 0 use the same GPU.", ("torch.cuda.set_device(local_rank)",), "said"
        )
        failures = NetworkFailure("group", "", "DistBackendError: Duplicate GPU detected", known=known)
        assert found(rank(0, failures), rank(1)).severity == "error"

    def test_a_name_that_resolves_to_the_loopback_is_told_where_gloo_fails_between_hosts(self):
        failure = NetworkFailure("group", "stuck", "8 s")
        assert found(rank(0, failure, resolved="127.0.1.1"), rank(1, resolved="10.0.0.2")).severity == "error"

    def test_a_rank_without_a_gpu_among_others(self):
        assert found(rank(0, device="cuda:0 (H100)"), rank(1, device="cpu")).severity == "error"
