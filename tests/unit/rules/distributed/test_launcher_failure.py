import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import LauncherTail
from diagnostics.rules.distributed.launcher_failure import LauncherFailure

CRASH = CrashFacts("ChildFailedError", "", (), live=False)
REST = "The cause is in that process's own output, above this text or in its log."


class TestFromCrash:
    @pytest.mark.parametrize(
        ("symptom", "seen"),
        [
            (LauncherTail("torchrun", 1, 1), "Rank 1 ended with exit code 1, and torchrun reports only that."),
            (
                LauncherTail("torchrun", 0, -9),
                "Rank 0 was ended by SIGKILL (exit code -9), and torchrun reports only that.",
            ),
            (LauncherTail("accelerate"), "A process failed, and accelerate reports only that."),
            (LauncherTail("torchrun", 0, -99), "Rank 0 ended with exit code -99, and torchrun reports only that."),
        ],
    )
    def test_says_which_process_and_how_it_ended(self, symptom, seen):
        finding = LauncherFailure().from_crash(CRASH, symptom)
        assert finding.message == f"{seen} {REST}"

    def test_says_how_to_get_the_traceback(self):
        finding = LauncherFailure().from_crash(CRASH, LauncherTail("torchrun", 1, 1))
        assert finding.fix == "torchrun --log-dir logs --tee 3 ..., and read the stderr of that rank"
