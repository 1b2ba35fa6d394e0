from diagnostics.api.explain import explain
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import CollectiveTimeoutCrash
from diagnostics.rules.distributed.collective_timeout import CollectiveTimeout

CRASH = CrashFacts("DistBackendError", "", (), live=False)


class TestFromCrash:
    def test_names_rank_call_and_wait(self):
        finding = CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash(3, "ALLREDUCE", 1120, 600.0))
        assert finding.message == (
            "Rank 3 waited in ALLREDUCE (number 1,120) for 600 s, and another rank did not take "
            "part. The rank that "
            "reports the timeout is seldom the one at fault."
        )
        assert finding.fix == "look for the first rank with a traceback, or without a line for the same step"

    def test_does_without_what_the_text_leaves_out(self):
        finding = CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash())
        assert finding.message.startswith("A rank waited in a collective, and another rank did not take part.")

    def test_counts_who_came_to_the_rendezvous(self):
        finding = CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash(seconds=601.0, joined=(3, 4)))
        assert finding.message == (
            "3 of 4 processes came to the rendezvous within 601 s. The others did not start, failed before "
            "init_process_group, or cannot reach MASTER_ADDR:MASTER_PORT."
        )

    def test_tells_more_processes_than_the_world_size(self):
        finding = CollectiveTimeout().from_crash(CRASH, CollectiveTimeoutCrash(joined=(8, 2)))
        assert finding.message.startswith(
            "8 processes came to the rendezvous, and the world size is 2: two runs use"
        )
        assert "nproc_per_node" in finding.fix


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
        finding = explained((0, "ALLREDUCE", 112, 9), (2, "BROADCAST", 111, 9), (1, "ALLREDUCE", 112, 9))
        assert finding.message == (
            "Rank 2 gave up in BROADCAST number 111, and ranks 0 and 1 in ALLREDUCE number 112: rank 2 is behind, "
            "and the others wait for what it has not made."
        )
        assert finding.fix.startswith("look at rank 2 first")

    def test_names_the_rank_that_made_another_call(self):
        finding = explained((0, "ALLREDUCE", 7, 9), (1, "BROADCAST", 7, 9), (2, "ALLREDUCE", 7, 9))
        assert finding.message == (
            "Number 7 is ALLREDUCE on ranks 0 and 2 and BROADCAST on rank 1: the ranks made different "
            "collectives, so none of them could end."
        )

    def test_names_the_rank_whose_tensor_has_another_size(self):
        said = explained((0, "ALLREDUCE", 7, 9), (1, "ALLREDUCE", 7, 8), group="").message
        assert "is ALLREDUCE of 9 elements on rank 0 and ALLREDUCE of 8 elements on rank 1" in said

    def test_blames_none_where_all_waited_in_the_same_call(self):
        finding = explained((0, "ALLREDUCE", 7, 9), (1, "ALLREDUCE", 7, 9))
        assert finding.message.startswith("Rank 0 waited in ALLREDUCE (number 7) for 600 s")

    def test_does_not_compare_the_numbers_of_different_groups(self):
        text = WATCHDOG.format(rank=0, call="ALLREDUCE", number=7, size=9, group="PG ID 0 PG GUID 0(default_pg) ")
        text += WATCHDOG.format(rank=1, call="ALLGATHER", number=3, size=9, group="PG ID 1 PG GUID 1(tp) ")
        assert explain(text).findings[0].message.startswith("Rank 0 waited in ALLREDUCE (number 7)")
