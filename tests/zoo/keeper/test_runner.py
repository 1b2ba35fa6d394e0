"""`python -m bugs run`: what a script may take and is given, what is shown, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ENDLESS = "import time\nprint('training', flush=True)\nwhile True: time.sleep(0.05)\n"
# A child, a grandchild, and a grandchild that has left the process group.
FAMILY = """\
import subprocess, sys, time
sleep = [sys.executable, "-c", "import sys, time; time.sleep(60)", __file__]
parent = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *sleep]
subprocess.Popen(sleep), subprocess.Popen(parent), subprocess.Popen(sleep, start_new_session=True)
time.sleep(0.5)
print("family started", flush=True)
"""


class TestBudget:
    def test_a_script_that_hangs_is_ended_with_all_that_it_started(
        self, zoo: Any, running: Callable[[], list[str]]
    ) -> None:
        zoo.cage(broken=FAMILY + ENDLESS, budget_s=2)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "too slow")
        assert re.fullmatch(r"ended after 2\.\d s; its budget is 2 s", said["reason"])
        assert 2 <= said["seconds"] < 3

    def test_a_script_that_eats_memory_is_ended(self, zoo: Any, running: Callable[[], list[str]]) -> None:
        hungry = "import time\nheld = []\nwhile True:\n    held.append(b'x' * 2**24)\n    time.sleep(0.02)\n"
        zoo.cage(broken=hungry, budget_mb=150)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "too big")
        assert said["reason"] == f"ended when it held {said['peak_mb']} MiB of memory; its budget is 150 MiB"
        assert 150 < said["peak_mb"] < 400

    def test_the_memory_of_its_children_counts(self, zoo: Any, running: Callable[[], list[str]]) -> None:
        hungry = "import time; held = b'x' * (120 * 2**20); time.sleep(30)"
        family = (
            "import subprocess, sys, time\n"
            f"for _ in range(2): subprocess.Popen([sys.executable, '-c', {hungry!r}, __file__])\n"
            "time.sleep(30)\n"
        )
        zoo.cage(broken=family, budget_mb=200)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "too big")

    def test_what_outlives_its_script_is_ended_with_it(self, zoo: Any, running: Callable[[], list[str]]) -> None:
        script = zoo.cage()
        script.write_text(FAMILY + script.read_text())
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (0, "reproduced")
        assert said["seconds"] < 5

    @pytest.mark.parametrize("variable", ["ZOO_MODEL", "ZOO_DATASET"])
    def test_a_real_model_or_real_data_may_take_more(self, zoo: Any, variable: str) -> None:
        zoo.cage(broken="import time\ntime.sleep(1.5)\nprint('eval_accuracy=0.7')\n", budget_s=1)
        assert zoo.run("04")[1]["verdict"] == "too slow"
        _, said = zoo.run("04", **{variable: "somebody/something-real"})
        assert (said["verdict"], said["budget_s"], said["budget_mb"]) == ("repaired", 60, 2000)


class TestInterruption:
    @pytest.mark.parametrize(
        ("sent", "code"),
        [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
    )
    def test_ends_the_script_and_all_that_it_started(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]], sent: signal.Signals, code: int
    ) -> None:
        zoo.cage(broken=FAMILY + ENDLESS)
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        keeper = subprocess.Popen(
            zoo.command("run", "04"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(temporary)},
        )
        assert keeper.stdout is not None
        while "training" not in keeper.stdout.readline():
            assert keeper.poll() is None
        assert len(running()) >= 5
        assert [path.name[:8] for path in temporary.iterdir()] == ["bug-zoo-"]
        keeper.send_signal(sent)
        _, errors = keeper.communicate(timeout=10)
        assert keeper.returncode == code
        assert errors == ("bugs: interrupted; nothing is left running\n" if sent == signal.SIGINT else "")
        assert list(temporary.iterdir()) == []


class TestSurroundings:
    def test_output_passes_through_unchanged_and_apart(self, zoo: Any) -> None:
        script = zoo.cage(
            broken="import sys\n"
            "sys.stdout.buffer.write(b'\\r 10%|#   |\\r 20%|##  |\\xff\\n')\n"
            "sys.stderr.buffer.write(b'\\x1b[31mred\\x1b[0m\\r\\n')\n"
        )
        directly = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60)
        kept = subprocess.run(zoo.command("run", "04"), capture_output=True, timeout=60)
        assert directly.stdout in kept.stdout
        assert directly.stderr == kept.stderr

    def test_output_comes_while_the_script_runs(self, zoo: Any) -> None:
        zoo.cage(broken="import time\nprint('first step')\ntime.sleep(30)\n", budget_s=40)
        keeper = subprocess.Popen(zoo.command("run", "04"), stdout=subprocess.PIPE, text=True)
        started = time.monotonic()
        assert keeper.stdout is not None
        while "first step" not in keeper.stdout.readline():
            assert time.monotonic() - started < 10
        keeper.send_signal(signal.SIGINT)
        keeper.communicate(timeout=10)

    @pytest.mark.exhaustive
    def test_a_million_lines_are_no_trouble(self, zoo: Any) -> None:
        zoo.cage(broken="for n in range(1_000_000): print('step', n)\nprint('eval_accuracy=0.7')\n", budget_s=60)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "repaired")

    def test_the_script_does_not_stand_in_the_readers_folder(self, zoo: Any, tmp_path: Path) -> None:
        broken = "import os\nopen('checkpoint', 'w').close()\nprint(os.getcwd())\nprint('eval_accuracy=0.7')\n"
        zoo.cage(broken=broken)
        here = tmp_path / "here"
        here.mkdir()
        done = subprocess.run(zoo.command("run", "04"), cwd=here, capture_output=True, text=True, timeout=60)
        assert list(here.iterdir()) == []
        folder = next(line for line in done.stdout.splitlines() if "bug-zoo-" in line)
        assert not Path(folder).exists()

    @pytest.mark.parametrize(("arguments", "seen"), [([], "None"), (["--seed", "3"], "3")])
    def test_the_seed_is_passed_on(self, zoo: Any, arguments: list[str], seen: str) -> None:
        zoo.cage(broken="import os\nprint('seed is', os.environ.get('ZOO_SEED'))\n")
        environment = {name: value for name, value in os.environ.items() if name != "ZOO_SEED"}
        command = zoo.command("run", "04", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert f"seed is {seen}\n" in done.stdout

    def test_a_model_in_a_folder_nearby_is_found_from_elsewhere(self, zoo: Any, tmp_path: Path) -> None:
        zoo.cage(broken="import os\nprint(os.environ['ZOO_MODEL'], os.environ['ZOO_DATASET'])\n")
        (tmp_path / "mine").mkdir()
        done = subprocess.run(
            zoo.command("run", "04"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"ZOO_MODEL": "mine", "ZOO_DATASET": "nyu-mll/glue:mnli"},
        )
        assert f"{tmp_path / 'mine'} nyu-mll/glue:mnli\n" in done.stdout


class TestDependency:
    def test_what_is_not_installed_is_named_with_the_remedy(self, zoo: Any, tmp_path: Path) -> None:
        # A folder without the package, put in front by the script itself: the child's own import fails.
        broken = (
            "import sys\nsys.path[:] = [p for p in sys.path if 'site-packages' not in p]\nimport datasets.load\n"
        )
        zoo.cage(broken=broken)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "missing dependency")
        assert said["reason"] == "this Python lacks 'datasets'; run `nox -s env` once, then try again"

    def test_a_module_that_nobody_ships_is_another_failure(self, zoo: Any) -> None:
        zoo.cage(broken="import trasformers\n")
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "another failure")
        assert said["exception"]["message"] == "No module named 'trasformers'"

    def test_the_keepers_own_dependencies_are_named_too(self, zoo: Any) -> None:
        zoo.cage()
        root = Path(__file__).parents[3]
        program = (
            f"import sys; sys.path.insert(0, {str(root)!r}); from bugs.__main__ import main; "
            f"sys.exit(main(['--root', {str(zoo.root)!r}, 'run', '04']))"
        )
        command = [sys.executable, "-I", "-S", "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        advice = "run `nox -s env` once and use `nox -s bug-NN`, or pip install -e .[zoo]"
        assert done.stderr == f"bugs: this Python ({sys.executable}) lacks 'rich'; {advice}\n"
        assert done.returncode == 1


class TestBlock:
    def test_says_reproduced_as_expected_and_what_to_do_next(self, zoo: Any) -> None:
        zoo.cage()
        done = zoo.bugs("run", "04")
        block = done.stdout[done.stdout.index("exhibit 04: ") :]
        took = next(line for line in block.splitlines() if line.startswith("took"))
        block = block.replace(took + "\n", "")
        assert [line.rstrip(" ─") for line in block.splitlines()] == [
            "exhibit 04: reproduced, as expected",
            "exception    ValueError",
            "message      Target 2 is out of bounds.",
            "surfaced     bugs/04_wrong_label_count/train.py:5 in loss",
            '                 raise ValueError(f"Target {label} is out of bounds.")',
            "",
            "next         python -m bugs try 04  (a copy to fix yourself)",
            "stuck?       python -m bugs hint 04",
            "the story    exhibits/04_wrong_label_count in the book: nox -s book",
            "the repair   nox -s fix-04, and solutions/04_wrong_label_count/why.md",
        ]

    def test_under_nox_the_commands_are_those_of_its_terminal(self, zoo: Any) -> None:
        zoo.cage()
        done = zoo.bugs("run", "04", BUG_ZOO_COMMAND="nox -s learn --")
        assert "next         nox -s learn -- try 04  (a copy to fix yourself)" in done.stdout
        assert "stuck?       nox -s learn -- hint 04" in done.stdout
        assert "python -m bugs" not in done.stdout

    def test_a_repair_is_answered_warmly(self, zoo: Any) -> None:
        zoo.cage(broken="print('eval_accuracy=0.74')\n")
        done = zoo.bugs("run", "04")
        assert done.returncode == 1
        assert "exhibit 04: repaired " in done.stdout
        assert "eval_accuracy=0.74 (at least 0.5 is a recovery)" in done.stdout
        assert "well done" in done.stdout

    def test_another_failure_stands_beside_the_declared_one(self, zoo: Any) -> None:
        zoo.cage(broken="raise KeyError('labels')\n")
        done = zoo.bugs("run", "04")
        assert "exhibit 04: not the failure of this exhibit" in done.stdout
        assert "exception    KeyError" in done.stdout
        assert r"declared     ValueError with '^Target \\d is out of bounds'" in done.stdout


class TestJson:
    def test_one_object_on_standard_output_and_the_script_on_standard_error(self, zoo: Any) -> None:
        zoo.cage(broken="print('to stdout')\nprint('eval_accuracy=0.2')\n")
        done = zoo.bugs("run", "04", "--json")
        assert list(json.loads(done.stdout)) == [
            "version",
            "exhibit",
            "title",
            "script",
            "verdict",
            "reason",
            "ok",
            "exit_code",
            "seconds",
            "budget_s",
            "peak_mb",
            "budget_mb",
            "exception",
            "metrics",
            "failure_of",
        ]
        assert done.stdout.count("\n") == 1
        assert done.stderr == "to stdout\neval_accuracy=0.2\n"

    def test_nan_and_infinity_are_text_so_that_every_parser_reads_it(self, zoo: Any) -> None:
        zoo.cage(broken="print('loss=nan')\nprint('norm=inf')\nprint('margin=-inf')\nprint('eval_accuracy=0.2')\n")
        said = zoo.bugs("run", "04", "--json").stdout
        metrics = strictly(said)["metrics"]
        assert metrics == {"loss": "nan", "norm": "inf", "margin": "-inf", "eval_accuracy": 0.2}


def strictly(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
