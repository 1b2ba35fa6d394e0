import pytest

from diagnostics.rules.device.worker_failure import WorkerFailure
from tests.support.messages import recognised, rows_by_kind

ROWS = rows_by_kind("worker-failure")
SENDS = "/usr/lib/python3.10/multiprocessing/reduction.py"


class TestFromMessage:
    @pytest.mark.parametrize("kind", ROWS)
    def test_each_kind_has_a_sentence_and_a_fix(self, kind):
        finding = WorkerFailure().from_message(*recognised(ROWS[kind].exception, ROWS[kind].examples[0]))
        assert (finding.severity, finding.evidence["kind"]) == ("error", kind)

    @pytest.mark.parametrize("files", [(), (SENDS,)], ids=["alone", "in a traceback"])
    def test_names_the_object_that_cannot_be_pickled(self, files):
        message = "Can't pickle local object 'Images.__init__.<locals>.<lambda>'"
        finding = WorkerFailure().from_message(*recognised("AttributeError", message, *files))
        assert finding.evidence["what"] == "Images.__init__.<locals>.<lambda>"

    def test_sends_the_reader_from_the_child_to_the_parent(self):
        child = recognised("EOFError", "Ran out of input", "/usr/lib/python3.10/multiprocessing/spawn.py")
        assert WorkerFailure().from_message(*child).evidence["kind"] == "child"

    def test_a_child_that_ended_while_it_was_started(self):
        parent = recognised("BrokenPipeError", "[Errno 32] Broken pipe", SENDS)
        assert WorkerFailure().from_message(*parent).evidence["kind"] == "spawned"
