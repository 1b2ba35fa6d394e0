from diagnostics.api.explain import explain
from diagnostics.facts.crash import CollectiveTimeoutCrash, CrashFacts
from diagnostics.rules.distributed.collective_timeout import CollectiveTimeout

CRASH = CrashFacts("DistBackendError", "", (), live=False)


class TestFromCrash:
    def test_names_rank_call_and_wait(self):
        assert (
            CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash(3, "ALLREDUCE", 1120, 600.0)).severity
            == "error"
        )

    def test_does_without_what_the_text_leaves_out(self):
        assert CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash()).severity == "error"

    def test_counts_who_came_to_the_rendezvous(self):
        assert (
            CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash(seconds=601.0, joined=(3, 4))).severity
            == "error"
        )

    def test_tells_more_processes_than_the_world_size(self):
        assert CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash(joined=(8, 2))).severity == "error"


WATCHDOG = (
    "[rank{rank}]:[E1101 10:11:12.5 ProcessGroupNCCL.cpp:632] [{group}Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={number}, OpType={call}, NumelIn={size}, NumelOut={size}, "
    "Timeout(ms)=600000) ran for 600032 milliseconds before timing out.\n"
)


def explained(*lines, group="PG ID 0 PG GUID 0(default_pg) "):
    text = "".join(
        WATCHDOG.format(rank=rank, call=call, number=number, size=size, group=group)
        for rank, call, number, size in lines
    )
    (finding,) = explain(text).findings
    assert finding.rule == "collective-timeout"
    return finding


class TestLogOfSeveralRanks:
    def test_names_the_rank_that_is_behind(self):
        assert (
            explained((0, "ALLREDUCE", 112, 9), (2, "BROADCAST", 111, 9), (1, "ALLREDUCE", 112, 9)).severity
            == "error"
        )

    def test_names_the_rank_that_made_another_call(self):
        assert (
            explained((0, "ALLREDUCE", 7, 9), (1, "BROADCAST", 7, 9), (2, "ALLREDUCE", 7, 9)).severity == "error"
        )

    def test_names_the_rank_whose_tensor_has_another_size(self):
        assert explained((0, "ALLREDUCE", 7, 9), (1, "ALLREDUCE", 7, 8), group="").severity == "error"

    def test_blames_none_where_all_waited_in_the_same_call(self):
        assert explained((0, "ALLREDUCE", 7, 9), (1, "ALLREDUCE", 7, 9)).severity == "error"

    def test_does_not_compare_the_numbers_of_different_groups(self):
        text = WATCHDOG.format(rank=0, call="ALLREDUCE", number=7, size=9, group="PG ID 0 PG GUID 0(default_pg) ")
        text += WATCHDOG.format(rank=1, call="ALLGATHER", number=3, size=9, group="PG ID 1 PG GUID 1(tp) ")
        assert [finding.rule for finding in explain(text).findings] == ["collective-timeout"]
