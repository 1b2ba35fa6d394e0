import pytest

from diagnostics.api.explain import explain
from diagnostics.facts.crash import CrashFacts, LauncherTail
from diagnostics.rules.distributed.launcher_failure import LauncherFailure

CRASH = CrashFacts("ChildFailedError", "", (), live=False)


class TestFromCrash:
    @pytest.mark.parametrize(
        "symptom",
        [
            LauncherTail("torchrun", 1, 1),
            LauncherTail("torchrun", 0, -9),
            LauncherTail("accelerate", None, 3221225477),
            LauncherTail("accelerate"),
            LauncherTail("torchrun", 0, -99),
        ],
    )
    def test_says_which_process_and_how_it_ended(self, symptom):
        assert LauncherFailure().from_crash(CRASH, symptom).severity == "error"

    def test_a_code_of_ten_digits_is_read_whole(self):
        text = (
            "subprocess.CalledProcessError: Command '['python', 't.py']' returned non-zero exit status 3221225477."
        )
        assert [finding.rule for finding in explain(text).findings] == ["launcher-failure"]

    def test_says_how_to_get_the_traceback(self):
        assert LauncherFailure().from_crash(CRASH, LauncherTail("torchrun", 1, 1)).severity == "error"


class TestLogsOfSchedulers:
    @pytest.mark.parametrize(
        "text",
        [
            "srun: error: gpu003: task 3: Exited with exit code 1",
            "srun: error: a: task 2: Segmentation fault",
            "srun: error: a: tasks 0-3: Exited with exit code 2",
            "mpirun noticed that process rank 1 with PID 7 on node a exited on signal 11 (Segfault).",
        ],
    )
    def test_name_the_task(self, text):
        (finding,) = explain(f"epoch 1: loss 0.69\n{text}\n").findings
        assert finding.rule == "launcher-failure"

    def test_of_labelled_tasks_the_one_that_srun_names_first_is_explained(self):
        failures = "".join(
            f'{task}: Traceback (most recent call last):\n{task}:   File "train.py", line 9, in main\n'
            f"{task}:     step()\n{task}: {error}\n"
            for task, error in (
                (0, "RuntimeError: Connection closed"),
                (1, "IndexError: Target 2 is out of bounds."),
            )
        )
        text = (
            failures + "srun: error: node-b: task 1: Exited with exit code 1\nsrun: error: node-a: task 0: Exited "
        )
        report = explain(f"{text}with exit code 1\n")
        assert [finding.rule for finding in report.findings] == ["labels-out-of-range"]
        assert "rank 1" in report.title
