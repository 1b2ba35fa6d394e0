"""What a script replaces in a framework is found, and what it merely uses is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bugs.zoo.learner.checking.tampering import SolutionReads, replaced


@pytest.fixture
def framework() -> Iterator[ModuleType]:
    module: Any = ModuleType("keras.made_up")
    exec("class Model:\n    def evaluate(self): ...\n    def fit(self): ...\ndef mean(): ...\n", vars(module))
    sys.modules["keras.made_up"] = module
    yield module
    del sys.modules["keras.made_up"]


def run(text: str, tmp_path: Path, framework: ModuleType) -> list[str]:
    script = tmp_path / "train.py"
    script.write_text(text)
    exec(compile(text, str(script.resolve()), "exec"), {"keras": framework, "json": json, "__name__": "__main__"})
    return replaced(script)


def test_functions_and_methods_of_the_script(tmp_path: Path, framework: ModuleType) -> None:
    text = "keras.mean = lambda: 1.0\ndef perfect(self): return 1.0\nkeras.Model.evaluate = perfect\n"
    assert run(text, tmp_path, framework) == ["keras.made_up.Model.evaluate", "keras.made_up.mean"]


def test_static_methods_properties_and_mocks(tmp_path: Path, framework: ModuleType) -> None:
    text = (
        "from unittest.mock import Mock\n"
        "keras.Model.fit = staticmethod(lambda: 0)\n"
        "keras.Model.evaluate = property(lambda self: 0)\n"
        "keras.mean = Mock(return_value=1.0)\n"
    )
    names = ("Model.evaluate", "Model.fit", "mean")
    assert run(text, tmp_path, framework) == [f"keras.made_up.{name}" for name in names]


def test_what_a_script_builds_on_a_framework_is_its_own(tmp_path: Path, framework: ModuleType) -> None:
    text = "class Mine(keras.Model):\n    def evaluate(self): ...\nmine = Mine()\nmine.fit = lambda: 0\n"
    assert run(text, tmp_path, framework) == []


class TestSolutionReads:
    @pytest.fixture
    def reads(self, tmp_path: Path) -> Iterator[SolutionReads]:
        (tmp_path / "solutions").mkdir()
        (tmp_path / "solutions" / "train.py").write_text("done = True\n")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "solutions.py").write_text("done = True\n")
        reads = SolutionReads(tmp_path / "solutions")
        yield reads
        reads.active = False  # the hook itself stays

    def test_a_solution_that_is_run_read_or_started(
        self, reads: SolutionReads, tmp_path: Path, monkeypatch
    ) -> None:
        import runpy

        monkeypatch.chdir(tmp_path)
        runpy.run_path("solutions/train.py")
        assert reads.seen
        reads.seen.clear()
        (tmp_path / "solutions" / "train.py").read_text()
        assert reads.seen
        reads.seen.clear()
        subprocess.run([sys.executable, "-c", "pass", "solutions/train.py"], check=True)
        assert reads.seen

    def test_other_files_of_that_name(self, reads: SolutionReads, tmp_path: Path) -> None:
        (tmp_path / "other" / "solutions.py").read_text()
        assert reads.seen == set()
