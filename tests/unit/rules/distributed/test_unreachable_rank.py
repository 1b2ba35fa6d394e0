import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.ranks.network import NetworkFacts, NetworkFailure, RankFacts
from diagnostics.rules.distributed.unreachable_rank import UnreachableRank

YOURS = FrameFacts("train.py", 8, "main", "step(batch)", yours=True)
CRASH = CrashFacts("RuntimeError", "", (YOURS,), live=False)


class TestFromMessage:
    def test_says_what_the_table_says_and_where(self):
        known = KnownFailure(
            "unreachable-rank",
            "Ranks 1 and 0 use the same GPU.",
            ("torch.cuda.set_device(local_rank)", "or else"),
            "said",
        )
        finding = UnreachableRank().from_message(CRASH, known)
        assert finding.message == "Ranks 1 and 0 use the same GPU."
        assert (finding.fix, finding.alternatives) == ("torch.cuda.set_device(local_rank)", ("or else",))
        assert finding.severity == "error"
        assert finding.evidence == {"said": "said"}
        assert str(finding.where) == "train.py:8 in main"

    def test_is_not_applicable_to_a_message_about_something_else(self):
        with pytest.raises(NotApplicable, match="points to another-rule"):
            UnreachableRank().from_message(CRASH, KnownFailure("another-rule", "", ("",), ""))


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
        assert finding.message == "2 of 3 ranks did not come to node-0:29500 within 5 s: ranks 1 and 2."
        assert finding.fix.startswith("read the output of rank 1")
        assert finding.evidence["missing"] == [1, 2]

    @pytest.mark.parametrize(
        ("kind", "text", "said", "fix"),
        [
            ("unresolved", "Name not known", "cannot find the host node-0 that MASTER_ADDR names", "MASTER_ADDR"),
            ("refused", "", "found nobody at node-0:29500 for 5 s: the connection is refused.", "rank 0"),
            ("no answer", "", "got no answer from node-0:29500 within 5 s. A firewall", "nc -vz node-0 29500"),
            ("elsewhere", "", "is to listen at node-0, which is no address of its host.", "MASTER_ADDR"),
            ("port taken", "", "cannot listen on port 29500: another program on this host does.", "MASTER_PORT"),
            ("not a store", "closed", "what listens there is not rank 0 of a job: closed.", "MASTER_PORT"),
            ("no interface", "GLOO_SOCKET_IFNAME=x, and the host has lo", "no such interface: GLOO_SOC", "ip -br"),
        ],
    )  # fmt: skip
    def test_says_what_is_wrong_at_the_rendezvous(self, kind, text, said, fix):
        finding = found(rank(1, NetworkFailure("rendezvous", kind, text)), viewpoint=1)
        assert finding.message.startswith("Rank 1 (node-1, process 11) ")
        assert said in finding.message
        assert fix in finding.fix

    def test_two_with_one_number_leave_another_without(self):
        finding = found(rank(0), rank(1), world=3, missing=(2,), claims={1: ("a, process 1", "b, process 2")})
        assert finding.message == (
            "2 processes say that they are rank 1: a, process 1 and b, process 2. Nobody is rank 2."
        )
        assert finding.evidence["ranks"] == [1, 2]

    def test_a_rank_that_ended_explains_what_the_others_noticed(self):
        closed = NetworkFailure("all-reduce", "", "RuntimeError: Connection closed by peer")
        finding = found(rank(0, closed), rank(1, begun="all-reduce", ending="SIGKILL"))
        assert finding.message == "Rank 1 (node-1, process 11) ended by SIGKILL during the all-reduce."
        assert "dmesg" in finding.fix

    def test_names_the_pairs_that_cannot_connect(self):
        failures = [NetworkFailure("connections", "no answer", f"10.0.0.{n}:4242", n) for n in (1, 2)]
        finding = found(rank(0, *failures, interface="eth0 10.0.0.9"), rank(1), rank(2))
        assert finding.message == (
            "Rank 0 (node-0, process 10) cannot connect to rank 1 (node-1, process 11): 10.0.0.1:4242 does not "
            "answer within 5 s, by eth0 10.0.0.9. The same holds for 0 to 2."
        )
        assert finding.evidence["pairs"] == [[0, 1], [0, 2]]
        assert finding.fix.startswith("open all TCP ports")

    def test_says_what_the_table_knows_of_the_library_s_message(self):
        known = KnownFailure("unreachable-rank", "Ranks 1 and 0 use the same GPU.", ("set_device",), "said")
        failures = NetworkFailure("group", "", "DistBackendError: Duplicate GPU detected", known=known)
        finding = found(rank(0, failures), rank(1))
        assert finding.message == (
            "Every two ranks can connect by TCP, and making the process group of gloo failed on rank 0 (node-0, "
            "process 10): DistBackendError: Duplicate GPU detected. Ranks 1 and 0 use the same GPU."
        )
        assert finding.fix == "set_device"

    def test_a_name_that_resolves_to_the_loopback_is_told_where_gloo_fails_between_hosts(self):
        failure = NetworkFailure("group", "stuck", "8 s")
        finding = found(rank(0, failure, resolved="127.0.1.1"), rank(1, resolved="10.0.0.2"))
        assert "On rank 0 the host's own name resolves to 127.0.1.1, which gloo offers" in finding.message

    def test_a_rank_without_a_gpu_among_others(self):
        finding = found(rank(0, device="cuda:0 (H100)"), rank(1, device="cpu"))
        assert finding.message == "Rank 1 sees no GPU, and rank 0 does: NCCL needs one on every rank."
