import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.processes import WorkerCrash
from diagnostics.rules.device.worker_failure import SEEN, WorkerFailure

CRASH = CrashFacts("AttributeError", "", (), live=False)
SPAWNING = FrameFacts("/usr/lib/python3.10/multiprocessing/reduction.py", 60, "dump", None, yours=False)


class TestFromCrash:
    def test_names_the_object_that_cannot_be_pickled(self):
        crash = CrashFacts("AttributeError", "", (SPAWNING,), live=False)
        assert (
            WorkerFailure().from_crash(crash, WorkerCrash("pickle", "Images.__init__.<locals>.<lambda>")).severity
            == "error"
        )

    def test_leaves_open_who_pickles_where_the_message_stands_alone(self):
        assert WorkerFailure().from_crash(CRASH, WorkerCrash("pickle", "_thread.lock")).severity == "error"

    def test_sends_the_reader_from_the_child_to_the_parent(self):
        assert WorkerFailure().from_crash(CRASH, WorkerCrash("pickle")).severity == "error"

    def test_names_the_signal(self):
        assert WorkerFailure().from_crash(CRASH, WorkerCrash("signal", "Segmentation fault")).severity == "error"

    @pytest.mark.parametrize("kind", SEEN)
    def test_each_kind_has_a_sentence_and_a_fix(self, kind):
        assert WorkerFailure().from_crash(CRASH, WorkerCrash(kind)).severity == "error"
