import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.processes import WorkerCrash
from diagnostics.rules.device.worker_failure import SEEN, WorkerFailure

CRASH = CrashFacts("AttributeError", "", (), live=False)
SPAWNING = FrameFacts("/usr/lib/python3.10/multiprocessing/reduction.py", 60, "dump", None, yours=False)


class TestFromCrash:
    def test_names_the_object_that_cannot_be_pickled(self):
        crash = CrashFacts("AttributeError", "", (SPAWNING,), live=False)
        finding = WorkerFailure().from_crash(crash, WorkerCrash("pickle", "Images.__init__.<locals>.<lambda>"))
        assert finding.message == (
            "Images.__init__.<locals>.<lambda> cannot be pickled, and a process that is spawned "
            "gets the dataset by "
            "pickle."
        )
        assert finding.fix == ("define functions at the top of a module, in place of lambdas and local functions")

    def test_leaves_open_who_pickles_where_the_message_stands_alone(self):
        finding = WorkerFailure().from_crash(CRASH, WorkerCrash("pickle", "_thread.lock"))
        assert finding.message == (
            "_thread.lock cannot be pickled. A process that is spawned gets the dataset by pickle (Windows, "
            "macOS, notebooks), and copy.deepcopy and functions that save whole objects pickle, too."
        )

    def test_sends_the_reader_from_the_child_to_the_parent(self):
        finding = WorkerFailure().from_crash(CRASH, WorkerCrash("pickle"))
        assert finding.message == (
            "An object of the dataset cannot be pickled, and a process that is spawned gets the "
            "dataset by pickle. The "
            "parent process says which one, above the child's EOFError."
        )

    def test_names_the_signal(self):
        finding = WorkerFailure().from_crash(CRASH, WorkerCrash("signal", "Segmentation fault"))
        assert finding.message == (
            "A worker of the data loader was ended by a signal (Segmentation fault), so it could raise nothing."
        )

    @pytest.mark.parametrize("kind", SEEN)
    def test_each_kind_has_a_sentence_and_a_fix(self, kind):
        finding = WorkerFailure().from_crash(CRASH, WorkerCrash(kind))
        assert finding.message == SEEN[kind][0]
        assert finding.fix
