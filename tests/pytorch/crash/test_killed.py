"""Processes that the operating system killed for want of memory, known by what is left of them in the output."""

import pytest

from diagnostics import InvalidInput
from diagnostics.facts.crash.memory import OutOfMemoryCrash
from tests.support.crashes import facts_of_text, symptom_of_text


class TestKilled:
    @pytest.mark.parametrize(
        "text",
        [
            "Killed",
            "epoch 1: loss 0.69\nKilled\n",
            "loss 0.69\n**Killed**",
            "run.sh: line 3:  4711 Killed                  python train.py",
            "zsh: killed     python train.py",
            "[1]    4711 killed     python train.py\nzsh: killed     python train.py",
            "[ 1234.5] Out of memory: Killed process 4711 (python) total-vm:68719476kB",
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.0",
            "  exitcode  : -9 (pid: 4711)",
            "  traceback : Signal 9 (SIGKILL) received by PID 4711",
            "subprocess.CalledProcessError: Command 'python' died with <Signals.SIGKILL: 9>.",
        ],
    )
    def test_is_known_by_what_is_left_of_it(self, text):
        assert symptom_of_text(text) == OutOfMemoryCrash(None, "CPU", killed=True)

    def test_may_be_a_worker(self):
        text = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. "
        assert symptom_of_text(text) == OutOfMemoryCrash(None, "CPU", killed=True, worker=True)

    def test_may_be_for_shared_memory(self):
        text = (
            "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that "
            "dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
        )
        assert symptom_of_text(text).kind == "shared memory"

    @pytest.mark.parametrize("text", ["nothing was Killed off here, only saved", "the process ended", "signal 15"])
    def test_is_not_seen_in_a_log_that_happens_to_say_so(self, text):
        with pytest.raises(InvalidInput, match="1 line without a traceback"):
            facts_of_text(text)
