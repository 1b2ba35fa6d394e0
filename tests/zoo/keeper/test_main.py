"""The program's commands that run nothing, and its answers to what it cannot do."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bugs.zoo.keeper.catalogue import load_catalogue

HERE = str(Path(__file__).parent)
ROOT = Path(__file__).parents[3]
CATALOGUE = load_catalogue(ROOT)


class TestExport:
    def test_json_and_csv_hold_the_same_rows(self, zoo: Any) -> None:
        zoo.cage("01_first", title='A title, with a comma and "quotes"', rules=["labels-out-of-range", "second"])
        zoo.cage()
        told = json.loads(zoo.bugs("export").stdout)["exhibits"]
        rows = list(csv.DictReader(zoo.bugs("export", "--format", "csv").stdout.splitlines()))
        assert [row["id"] for row in told] == ["01", "04"]
        assert told[0]["rules"] == ["labels-out-of-range", "second"]
        as_text = [
            {name: " ".join(cell) if isinstance(cell, list) else str(cell) for name, cell in row.items()}
            for row in told
        ]
        assert rows == as_text

    def test_paths_of_the_real_catalogue_are_there(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "bugs", "export"], capture_output=True, text=True, cwd=ROOT, check=True
        )
        told = json.loads(done.stdout)["exhibits"]
        assert [row["id"] for row in told] == list(CATALOGUE)
        assert all((ROOT / row[name]).is_file() for row in told for name in ("script", "solution"))
        assert all(row["fails_with"] and row["repaired_when"] and row["sources"] for row in told)

    def test_refuses_a_broken_manifest(self, zoo: Any) -> None:
        zoo.cage("01_first", budget_s="soon")
        done = zoo.bugs("export", "--format", "csv")
        assert (done.stdout, done.returncode) == ("", 2)
        assert "bugs/01_first/exhibit.toml" in done.stderr


class TestList:
    def test_shows_every_cage_in_a_row(self, zoo: Any) -> None:
        zoo.cage("01_first", title="The raw dataset")
        zoo.cage()
        done = zoo.bugs("list")
        assert [line.split() for line in done.stdout.splitlines()[:3]] == [
            ["id", "title", "framework", "stage", "symptom", "rules"],
            ["01", "The", "raw", "dataset", "PyTorch", "model", "throws", "labels-out-of-range"],
            ["04", *["Three", "labels,", "two", "outputs", "PyTorch", "model", "throws", "labels-out-of-range"]],
        ]
        assert done.returncode == 0

    def test_shows_a_broken_manifest_beside_the_others(self, zoo: Any) -> None:
        zoo.cage("01_first", budget_s="soon")
        zoo.cage()
        done = zoo.bugs("list")
        rows = done.stdout.splitlines()
        assert rows[1].rstrip() == "01  broken manifest, see below"
        assert rows[2].startswith("04  Three labels, two outputs")
        fault = "bugs/01_first/exhibit.toml: budget_s: expected a number of seconds above 0, got 'soon'"
        assert fault in rows
        assert done.returncode == 1

    @pytest.mark.parametrize(
        ("columns", "row"),
        [
            (
                "200",
                "04  Three labels, two outputs  PyTorch    model  throws   labels-out-of-range, second, third",
            ),
            ("86", "04  Three labels, two outputs  PyTorch    model  throws   labels-out-of-range +2"),
            ("78", "04 Three labels, two outputs PyTorch   model throws  labels-out-of-range +2"),
            ("74", "04  Three labels, two outputs  PyTorch    throws   labels-out-of-range +2"),
            ("68", "04  Three labels, two outputs  PyTorch    labels-out-of-range +2"),
            ("38", "04 Three labels, two outputs PyTorch"),
            ("33", "04  Three labels, two outputs"),
            ("20", "04 Three labels, two"),
        ],
    )
    def test_a_narrow_window_gets_fewer_columns(self, zoo: Any, columns: str, row: str) -> None:
        zoo.cage(rules=["labels-out-of-range", "second", "third"])
        zoo.cage("01_first", title="The raw dataset")
        done = zoo.bugs("list", COLUMNS=columns)
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        assert (lines[2], lines[3]) == (row, "")
        assert max(map(len, lines[:3])) <= int(columns)

    @pytest.mark.parametrize("columns", [40, 80, 120])
    def test_the_zoo_itself_fits(self, columns: int) -> None:
        lines = self.list_of_the_zoo(COLUMNS=str(columns))
        assert max(map(len, lines)) <= columns
        assert "…" not in "".join(lines)
        assert len(lines) == len(CATALOGUE) + 5  # the head, an empty line, three commands
        assert [line[:2] for line in lines[1:-4]] == list(CATALOGUE)
        assert any(line.endswith(" +1") for line in lines) == (columns >= 80)

    @pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_a_pipe_gets_no_colours(self, environment: dict[str, str]) -> None:
        assert "\x1b" not in "".join(self.list_of_the_zoo(COLUMNS="80", **environment))

    def list_of_the_zoo(self, **environment: str) -> list[str]:
        command = [sys.executable, "-m", "bugs", "list"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment)
        return [line.rstrip() for line in done.stdout.splitlines()]

    def test_an_empty_zoo_says_so(self, zoo: Any) -> None:
        (zoo.root / "bugs").mkdir()
        done = zoo.bugs("list")
        assert done.stdout == "The zoo is empty: there is no bugs/NN_name/exhibit.toml here.\n"

    def test_json_holds_the_cages_and_the_broken_ones(self, zoo: Any) -> None:
        zoo.cage("01_first", budget_s="soon")
        zoo.cage()
        said = json.loads(zoo.bugs("list", "--json").stdout)
        assert said == {
            "version": 1,
            "exhibits": [
                {
                    "id": "04",
                    "folder": "04_wrong_label_count",
                    "title": "Three labels, two outputs",
                    "framework": "torch",
                    "stage": "model",
                    "symptom": "throws",
                    "rules": ["labels-out-of-range"],
                    "budget_s": 20,
                    "budget_mb": 200,
                    "page": "exhibits/04_wrong_label_count",
                }
            ],
            "broken": ["bugs/01_first/exhibit.toml: budget_s: expected a number of seconds above 0, got 'soon'"],
        }


class TestHint:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["04"], "exhibit 04, hint 1 of 3: Which labels are there?\nmore: python -m bugs hint 04\n"),
            (["4", "2"], "exhibit 04, hint 2 of 3: How many outputs?\nmore: python -m bugs hint 04\n"),
            (
                ["bug-04", "3"],
                "exhibit 04, hint 3 of 3: num_labels is 2 if you say nothing.\nthe fix: python -m bugs diff 04\n",
            ),
        ],
    )
    def test_each_hint_says_where_more_is(self, zoo: Any, arguments: list[str], said: str) -> None:
        zoo.cage()
        assert zoo.bugs("hint", *arguments).stdout == said

    def test_json(self, zoo: Any) -> None:
        zoo.cage()
        said = json.loads(zoo.bugs("hint", "04", "2", "--json").stdout)
        assert said == {"version": 1, "exhibit": "04", "number": 2, "hint": "How many outputs?"}


class TestComplaints:
    @pytest.mark.parametrize("command", ["run", "hint", "verify"])
    def test_an_unknown_cage_gets_one_line_with_the_near_ones(self, zoo: Any, command: str) -> None:
        zoo.cage()
        done = zoo.bugs(command, "wrong_labels")
        assert done.stderr == "bugs: no exhibit is called 'wrong_labels'; did you mean 04_wrong_label_count?\n"
        assert (done.returncode, done.stdout) == (2, "")

    @pytest.mark.parametrize("name", ["4", "bug-04", "04_wrong_label_count"])
    def test_a_broken_manifest_gets_one_line(self, zoo: Any, name: str) -> None:
        zoo.cage(stage="loss")
        zoo.cage("01_first")
        done = zoo.bugs("run", name)
        assert done.stderr.startswith("bugs: bugs/04_wrong_label_count/exhibit.toml: stage: expected 'data', ")
        assert done.stderr.endswith(", got 'loss'\n")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)

    def test_a_broken_manifest_does_not_close_the_other_cages(self, zoo: Any) -> None:
        zoo.cage()
        zoo.cage("01_first", stage="loss")
        assert zoo.run("04")[0] == 0

    def test_a_broken_manifest_stops_the_verification_of_all(self, zoo: Any) -> None:
        zoo.cage()
        zoo.cage("01_first", title="")
        done = zoo.bugs("verify")
        message = "bugs/01_first/exhibit.toml: title: expected a text that is not empty, got ''"
        assert (done.returncode, done.stderr) == (2, f"bugs: {message}\n")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["run", "04", "--seed", "x"], "argument --seed: expected a whole number, 0 or above, got 'x'"),
            (["verify", "--seeds", "0"], "argument --seeds: expected a whole number above 0, got '0'"),
            (["verify", "--jobs", "two"], "argument --jobs: expected a whole number above 0, got 'two'"),
            (["hint", "04", "4"], "argument 1|2|3: invalid choice: 4 (choose from 1, 2, 3)"),
            (["--root", "nowhere", "list"], "argument --root: 'nowhere' is not a zoo: there is no such folder"),
            (["--root", __file__, "list"], f"argument --root: {__file__!r} is not a zoo: there is no such folder"),
            (["--root", HERE, "run", "04"], f"argument --root: {HERE!r} is not a zoo: it has no folder bugs/"),
            ([], "the following arguments are required: COMMAND"),
        ],
    )
    def test_bad_usage_gets_one_line(self, zoo: Any, arguments: list[str], message: str) -> None:
        zoo.cage()
        done = zoo.bugs(*arguments)
        assert done.stderr.splitlines()[-1].partition("error: ")[2] == message
        assert done.returncode == 2
