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
