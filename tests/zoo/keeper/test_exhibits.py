"""The real cages, opened: they take minutes, and are what the zoo is for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bugs.zoo.keeper.catalogue import load_catalogue

CATALOGUE = load_catalogue(Path(__file__).resolve().parents[3])

pytestmark = pytest.mark.slow


def bugs(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the keeper's program with --json; one thread each, since other tests run beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "bugs", *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=900,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("id", CATALOGUE)
@pytest.mark.exhaustive
def test_a_cage_holds_what_it_says_in_both_directions(id: str) -> None:
    code, said = bugs("verify", id, "--jobs", "1")
    problems = {trial["script"]: trial["problems"] + trial["faults"] for trial in said["trials"]}
    exhibit = CATALOGUE[id]
    assert problems == {f"bugs/{exhibit.folder}/train.py": [], f"solutions/{exhibit.folder}/train.py": []}
    assert code == 0
    for trial in said["trials"]:  # though examined on the way, and with other tests running beside it
        assert trial["seconds"] < exhibit.budget_s
        assert trial["peak_mb"] < exhibit.budget_mb


def test_a_broken_script_runs_as_a_reader_runs_it() -> None:
    code, said = bugs("run", "15")  # without transformers, which take seconds to be imported
    assert (code, said["verdict"]) == (0, "reproduced")


@pytest.mark.skipif(sys.platform == "win32", reason="the shared GPU is kept by what Unix has")
class TestTheNotebookThatHoldsTheCard:
    """Cage 08 has a second process, and nothing of it may stay, however the first one ends."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
        """The keeper, and all processes under it, at the moment when the notebook is there."""
        keeper = subprocess.Popen(
            [sys.executable, "-m", "bugs", "run", "08"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
        )
        try:
            for _ in range(1200):
                processes = psutil.Process(keeper.pid).children(recursive=True)
                if any("notebook.run()" in " ".join(process.cmdline()) for process in processes):
                    break
                time.sleep(0.1)
            else:
                pytest.fail("the notebook was not opened within two minutes")
            yield keeper, processes
        finally:
            keeper.kill()
            keeper.wait()

    @pytest.mark.exhaustive
    def test_goes_when_ctrl_c_ends_the_keeper(self, opened: Any, tmp_path: Path) -> None:
        keeper, processes = opened
        keeper.send_signal(signal.SIGINT)
        assert keeper.communicate(timeout=60)[1].endswith("bugs: interrupted; nothing is left running\n")
        assert psutil.wait_procs(processes, timeout=20)[1] == []
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.exhaustive
    def test_goes_when_the_script_is_killed(self, opened: Any, tmp_path: Path) -> None:
        keeper, processes = opened
        processes[0].kill()
        keeper.communicate(timeout=60)
        assert psutil.wait_procs(processes, timeout=20)[1] == []
        assert list(tmp_path.iterdir()) == []
