"""Records of a verification are read as long as they are true, and no longer."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from book import panels
from bugs.zoo.keeper import verified
from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.keeper.verified import Said

ROOT = Path(__file__).parents[3]
SAID = Said(1, "epoch 1\n", "ValueError: Target 2 is out of bounds.\n")


@pytest.fixture
def exhibit(tmp_path: Path) -> Exhibit:
    """An exhibit with a record of what its broken script said."""
    exhibit = dataclasses.replace(load_catalogue(ROOT)["04"], root=tmp_path)
    for script in (exhibit.script, exhibit.solution):
        script.parent.mkdir(parents=True)
        script.write_text("print('run for real')\n")
    verified.keep(exhibit, exhibit.script, os.environ, SAID)
    return exhibit


class TestKept:
    def test_is_what_was_said(self, exhibit: Exhibit) -> None:
        assert verified.kept(exhibit, exhibit.script) == SAID

    def test_is_nothing_for_the_other_script(self, exhibit: Exhibit) -> None:
        assert verified.kept(exhibit, exhibit.solution) is None

    def test_is_nothing_for_a_script_that_was_edited(self, exhibit: Exhibit) -> None:
        exhibit.script.write_text("print('repaired')\n")
        assert verified.kept(exhibit, exhibit.script) is None

    @pytest.mark.parametrize(
        "name", ["ZOO_SEED", "ZOO_MODEL", "ZOO_DATASET", "ZOO_DEVICE", "OMP_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"]
    )
    def test_is_nothing_in_another_environment(
        self, exhibit: Exhibit, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setenv(name, "77")
        assert verified.kept(exhibit, exhibit.script) is None

    def test_is_nothing_under_other_versions(self, exhibit: Exhibit, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verified, "version", lambda name: "0.0")
        assert verified.kept(exhibit, exhibit.script) is None

    def test_is_nothing_over_another_lab(
        self, exhibit: Exhibit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(verified, "LAB", tmp_path)
        assert verified.kept(exhibit, exhibit.script) is None

    def test_takes_no_seed_for_seed_0(self, exhibit: Exhibit, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ZOO_SEED", "0")
        assert verified.kept(exhibit, exhibit.script) == SAID

    @pytest.mark.parametrize("text", ["", "[]", "{}", "not JSON"])
    def test_is_nothing_if_the_record_is_damaged(self, exhibit: Exhibit, text: str) -> None:
        (record,) = (exhibit.root / ".verified").iterdir()
        record.write_text(text)
        assert verified.kept(exhibit, exhibit.script) is None

    def test_takes_the_place_of_an_older_one_and_of_no_other_script_s(self, exhibit: Exhibit) -> None:
        exhibit.script.write_text("print('edited')\n")
        for script in (exhibit.script, exhibit.solution):
            verified.keep(exhibit, script, os.environ, Said(0, "", ""))
        names = sorted(path.name.split(".")[1] for path in (exhibit.root / ".verified").iterdir())
        assert names == ["broken", "solution"]


class TestPanel:
    def test_shows_the_record(self, exhibit: Exhibit, capsys: pytest.CaptureFixture[str]) -> None:
        panels.last_words(exhibit)
        assert capsys.readouterr().out.endswith("ValueError: Target 2 is out of bounds.\n")

    def test_runs_the_script_where_there_is_none(
        self, exhibit: Exhibit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        exhibit.script.write_text("print('run once more')\n")
        panels.last_words(exhibit)
        assert capsys.readouterr().out.endswith("run once more\n")


class TestVerification:
    def test_keeps_what_was_as_declared(self, zoo: Any) -> None:
        zoo.cage(
            broken="raise IndexError('Target 2 is out of bounds.')\n", repaired="print('eval_accuracy=0.7')\n"
        )
        zoo.bugs("verify")
        (record,) = zoo.root.glob(".verified/*")
        assert record.name.split(".")[1] == "solution"  # no rule names the broken one
        said = Said(**json.loads(record.read_text()))
        assert said == Said(0, "eval_accuracy=0.7\n", "")
