"""`python -m bugs verify`: both twins, and the library's word on both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

TORCH = """\
import os
import torch

outputs = {outputs}
torch.nn.functional.cross_entropy(torch.zeros(4, outputs), torch.tensor([0, 1, 2, 0]))
print("eval_accuracy=0." + str(6 + int(os.environ["ZOO_SEED"])))
"""
# A fork of a process that has imported PyTorch can run it: it sets no variable that an import reads.
FORKED = TORCH.replace('environ["ZOO_SEED"]', 'environ.get("ZOO_SEED", 0)')
# What a solution prints, and what a broken script may say, without the seconds that PyTorch takes to be imported.
PRINTS = "import os\nprint('eval_accuracy=0.' + str(6 + int(os.environ['ZOO_SEED'])))\n"
FAILS: dict[str, Any] = {
    "broken": "raise AssertionError('Torch not compiled with CUDA enabled')\n",
    "rules": ["installation-mismatch"],
    "signature": {
        "exception": "AssertionError",
        "message": "not compiled with CUDA",
        "surfaces": "04_wrong_label_count/train.py in <module>",
        "caused": "raise",
    },
}
SIGNATURE = {
    "exception": "IndexError",
    "message": "Target 2 is out of bounds",
    "surfaces": "torch/nn/functional.py in cross_entropy",
    "caused": "outputs = 2",
}


def add_cage(zoo: Any, folder: str = "04_wrong_label_count", **changes: Any) -> None:
    values: dict[str, Any] = {"broken": TORCH.format(outputs=2), "repaired": PRINTS}
    zoo.cage(folder, **(values | {"signature": SIGNATURE, "budget_mb": 1500} | changes))


def verify(zoo: Any, *arguments: str, **environment: str) -> tuple[int, list[dict[str, Any]]]:
    done = zoo.bugs("verify", *arguments, "--json", **environment)
    said = json.loads(done.stdout)
    assert said["ok"] == all(trial["ok"] for trial in said["trials"])
    return done.returncode, said["trials"]


class TestVerify:
    @pytest.mark.parametrize("script", [FORKED, pytest.param(TORCH, marks=pytest.mark.exhaustive)])
    def test_both_twins_of_every_cage_and_seed_are_tried(self, zoo: Any, script: str) -> None:
        add_cage(zoo, broken=script.format(outputs=2))
        code, trials = verify(zoo, "--seeds", "2", "--jobs", "1", OMP_NUM_THREADS="1")
        assert code == 0
        assert [(trial["seed"], trial["verdict"]) for trial in trials] == [
            (0, "reproduced"),
            (0, "recovered"),
            (1, "reproduced"),
            (1, "recovered"),
        ]
        assert [trial["rules"] for trial in trials] == [["labels-out-of-range"], [], ["labels-out-of-range"], []]
        assert [trial["metrics"] for trial in trials] == [{}, {"eval_accuracy": 0.6}, {}, {"eval_accuracy": 0.7}]
        assert all(trial["problems"] == [] for trial in trials)

    def test_a_missing_report_is_a_problem_of_its_own(self, zoo: Any) -> None:
        ends_at_once = (
            "import os, sys, traceback\n"
            "sys.excepthook = lambda *error: (traceback.print_exception(*error), os.kill(os.getpid(), 9))\n"
        )
        add_cage(zoo, **FAILS | {"broken": ends_at_once + FAILS["broken"]})
        code, (broken, _) = verify(zoo)
        assert code == 1
        assert broken["problems"][0] == (
            "no report was written; the last line was: AssertionError: Torch not compiled with CUDA enabled"
        )

    @pytest.mark.exhaustive
    def test_json_is_strict_with_nan_and_infinity_in_the_metrics(self, zoo: Any) -> None:
        def refuse(constant: str) -> None:
            raise ValueError(f"{constant} is not JSON")

        add_cage(zoo, repaired=TORCH.format(outputs=3) + "print('loss=nan')\nprint('norm=inf')\n")
        trials = json.loads(zoo.bugs("verify", "--json").stdout, parse_constant=refuse)["trials"]
        assert trials[1]["metrics"] == {"eval_accuracy": 0.6, "loss": "nan", "norm": "inf"}

    def test_a_declared_rule_that_nobody_reports_is_a_problem(self, zoo: Any) -> None:
        add_cage(zoo, **FAILS | {"rules": ["installation-mismatch", "ragged-batch"]})
        code, trials = verify(zoo)
        assert code == 1
        assert trials[0]["problems"] == ["not reported: ragged-batch"]
        assert trials[1]["problems"] == []

    @pytest.mark.exhaustive
    def test_another_rule_than_the_declared_one_is_a_problem(self, zoo: Any) -> None:
        add_cage(zoo, rules=["ragged-batch"])
        code, trials = verify(zoo)
        assert code == 1
        assert trials[0]["problems"] == [
            "expected ragged-batch first, got labels-out-of-range",
            "not reported: ragged-batch",
        ]

    def test_a_broken_script_that_no_longer_breaks_is_a_problem(self, zoo: Any) -> None:
        add_cage(zoo, broken=f"outputs = 3\n{PRINTS}")
        code, trials = verify(zoo)
        assert code == 1
        assert trials[0]["problems"] == [
            "repaired: eval_accuracy=0.6 (at least 0.5 is a recovery)",
            "expected labels-out-of-range in the exception, but there was none to explain",
            "not reported: labels-out-of-range",
        ]

    @pytest.mark.exhaustive
    def test_a_solution_that_breaks_is_a_problem(self, zoo: Any) -> None:
        add_cage(zoo, repaired=TORCH.format(outputs=2))
        code, trials = verify(zoo)
        assert code == 1
        assert trials[0]["problems"] == []
        assert trials[1]["problems"] == [
            "another failure: IndexError: Target 2 is out of bounds.",
            "false alarm on the solution: labels-out-of-range",
        ]

    @pytest.mark.exhaustive
    def test_only_the_cages_asked_for_are_opened_and_each_once(self, zoo: Any) -> None:
        add_cage(zoo, "01_other", stage="a broken manifest does not matter here")
        add_cage(zoo)
        code, trials = verify(zoo, "4", "bug-04")
        assert (code, [trial["exhibit"] for trial in trials]) == (0, ["04", "04"])


class TestTable:
    def test_has_a_row_a_seed_and_a_sum(self, zoo: Any) -> None:
        add_cage(zoo, **FAILS)
        done = zoo.bugs("verify", "--seeds", "2", "--jobs", "1")
        lines = done.stdout.splitlines()
        assert lines[:4] == [
            "04 seed 0 broken   ✓ AssertionError",
            "04 seed 0 solution ✓ eval_accuracy=0.6",
            "04 seed 1 broken   ✓ AssertionError",
            "04 seed 1 solution ✓ eval_accuracy=0.7",
        ]
        header, first, second = (line.split() for line in lines[4:7])
        assert header == ["id", "seed", "broken", "rules", "named", "solution", "seconds"]
        assert first[:7] == ["04", "0", "✓", "AssertionError", "installation-mismatch", "✓", "eval_accuracy=0.6"]
        assert second[:7] == ["04", "1", "✓", "AssertionError", "installation-mismatch", "✓", "eval_accuracy=0.7"]
        assert lines[-1] == "4 of 4 trials are as declared."
        assert done.returncode == 0

    def test_tells_what_is_not_as_declared_with_the_scripts_last_words(self, zoo: Any) -> None:
        add_cage(zoo, **FAILS, repaired="import sys\nprint('out of luck', file=sys.stderr)\nsys.exit(3)\n")
        done = zoo.bugs("verify")
        assert done.stdout.splitlines()[-5:] == [
            "exhibit 04, seed 0, solution",
            "  another failure: ended with exit code 3, and no exception was printed",
            "    out of luck",
            "",
            "1 of 2 trials are as declared.",
        ]
        assert done.returncode == 1


def test_an_interruption_ends_every_script(zoo: Any, running: Callable[[], list[str]]) -> None:
    zoo.cage(broken="import time\ntime.sleep(60)\n", repaired="import time\ntime.sleep(60)\n")
    keeper = subprocess.Popen(zoo.command("verify"), stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    deadline = time.monotonic() + 20
    while sum("diagnostics run" in line for line in running()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    keeper.send_signal(signal.SIGINT)
    _, errors = keeper.communicate(timeout=10)
    assert (keeper.returncode, errors) == (130, "bugs: interrupted; nothing is left running\n")
