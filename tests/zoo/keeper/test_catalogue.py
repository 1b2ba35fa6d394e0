"""The manifests are checked to the last key, and each mistake is answered in one line."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bugs.zoo.keeper.catalogue import (
    CatalogueError,
    Condition,
    ExceptionSignature,
    MetricSignature,
    Recovery,
    UnknownExhibit,
    find,
    load_catalogue,
    survey,
)

MANIFEST = "bugs/04_wrong_label_count/exhibit.toml"
GUESS = {"guess": "it is late", "answer": "it is not"}
SIGNATURE = {
    "exception": "ValueError",
    "message": "out of bounds",
    "surfaces": "train.py in loss",
    "caused": "OUTPUTS = 2",
}
RECOVERY = {"metric": "eval_accuracy", "comparison": ">=", "value": 0.5}
METRIC = {"metric": "train_loss", "comparison": ">", "value": 1.0, "seen": "loss: 1.1"}


class TestLoadCatalogue:
    def test_a_manifest_becomes_an_exhibit(self, zoo: Any) -> None:
        zoo.cage()
        exhibit = load_catalogue(zoo.root)["04"]
        assert exhibit.title == "Three labels, two outputs"
        assert exhibit.rules == ("labels-out-of-range",)
        assert (exhibit.budget_s, exhibit.budget_mb) == (20, 200)
        assert exhibit.script == zoo.root / "bugs/04_wrong_label_count/train.py"
        assert exhibit.solution == zoo.root / "solutions/04_wrong_label_count/train.py"
        assert exhibit.why == zoo.root / "solutions/04_wrong_label_count/why.md"
        assert exhibit.page == "exhibits/04_wrong_label_count"
        assert isinstance(exhibit.signature, ExceptionSignature)
        assert exhibit.signature.surface_path == "04_wrong_label_count/train.py"
        assert exhibit.signature.surface_function == "loss"
        assert exhibit.recovery == Recovery("eval_accuracy", ">=", 0.5)

    def test_a_silent_exhibit_has_a_metric_for_a_signature(self, zoo: Any) -> None:
        zoo.cage(symptom="silent", signature=METRIC)
        assert load_catalogue(zoo.root)["04"].signature == MetricSignature("train_loss", ">", 1.0, "loss: 1.1")

    def test_exhibits_come_in_the_order_of_their_ids(self, zoo: Any) -> None:
        for folder in ("10_late", "02_second", "01_first"):
            zoo.cage(folder)
        assert list(load_catalogue(zoo.root)) == ["01", "02", "10"]

    def test_what_git_leaves_behind_is_no_exhibit(self, zoo: Any) -> None:
        (zoo.root / "bugs" / "07_gone" / "__pycache__").mkdir(parents=True)
        assert load_catalogue(zoo.root) == {}

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"budget_s": "soon"}, "budget_s: expected a number of seconds above 0, got 'soon'"),
            ({"budget_s": 0}, "budget_s: expected a number of seconds above 0, got 0"),
            ({"budget_s": True}, "budget_s: expected a number of seconds above 0, got True"),
            ({"budget_s": -5}, "budget_s: expected a number of seconds above 0, got -5"),
            ({"budget_s": math.inf}, "budget_s: expected a finite number of seconds above 0, got inf"),
            ({"budget_s": -math.inf}, "budget_s: expected a finite number of seconds above 0, got -inf"),
            ({"budget_s": math.nan}, "budget_s: expected a finite number of seconds above 0, got nan"),
            ({"budget_s": 10**400}, f"budget_s: expected a finite number of seconds above 0, got {10**400}"),
            ({"budget_mb": math.inf}, "budget_mb: expected a finite whole number of MiB above 0, got inf"),
            ({"budget_mb": True}, "budget_mb: expected a whole number of MiB above 0, got True"),
            (
                {"recovery": {"metric": "eval_accuracy", "comparison": ">=", "value": math.nan}},
                "recovery.value: expected a finite number, got nan",
            ),
            ({"budget_mb": 1.5}, "budget_mb: expected a whole number of MiB above 0, got 1.5"),
            ({"budget_mb": -1}, "budget_mb: expected a whole number of MiB above 0, got -1"),
            ({"id": 4}, "id: expected two digits in quotes, such as '04', got 4"),
            ({"id": "05"}, "id: expected '04', as the folder, got '05'"),
            ({"title": " "}, "title: expected a text that is not empty, got ' '"),
            ({"titel": "x"}, "titel: unknown key; did you mean 'title'?"),
            (
                {"colour": "x"},
                "colour: unknown key; expected id, title, framework, stage, symptom, rules, budget_s, budget_mb, "
                "hints, sources, signature, recovery",
            ),
            ({"guesses": []}, "guesses: expected three to five tables [[guesses]], got []"),
            ({"guesses": 3 * [GUESS]}, "guesses: expected one with right = true, got 0"),
            (
                {"guesses": [*2 * [GUESS], {"guess": "it is late"}]},
                "guesses.answer: missing; expected a text that is not empty",
            ),
            ({"without": "title"}, "title: missing; expected a text that is not empty"),
            ({"framework": "jax"}, "framework: expected 'torch' or 'keras', got 'jax'"),
            (
                {"stage": "loss"},
                "stage: expected 'data', 'batch', 'model', 'gradient', 'numerics', 'optimizer', 'evaluation', "
                "'memory', 'device', 'distributed' or 'reproducibility', got 'loss'",
            ),
            ({"symptom": "odd"}, "symptom: expected 'throws', 'silent' or 'exhausts', got 'odd'"),
            ({"rules": []}, "rules: expected a list of rules, such as ['labels-out-of-range'], got []"),
            ({"rules": "a"}, "rules: expected a list of rules, such as ['labels-out-of-range'], got 'a'"),
            (
                {"hints": ["one", "two"]},
                "hints: expected three hints, none empty, each saying more than the one before, got ['one', "
                "'two']",
            ),
            (
                {"hints": ["one", "", "three"]},
                "hints: expected three hints, none empty, each saying more than the one before, got ['one', '', "
                "'three']",
            ),
            ({"sources": [3]}, "sources: expected a list of sources, got [3]"),
            ({"signature": "IndexError"}, "signature: expected a table, got 'IndexError'"),
            (
                {"signature": SIGNATURE | {"message": "(unclosed"}},
                "signature.message: expected a regular expression (missing ), unterminated subpattern at position "
                "0), got '(unclosed'",
            ),
            (
                {"signature": SIGNATURE | {"surfaces": "train.py"}},
                "signature.surfaces: expected 'path.py in function', such as 'torch/nn/functional.py in "
                "cross_entropy', got 'train.py'",
            ),
            (
                {"signature": SIGNATURE | {"exception": "an error"}},
                "signature.exception: expected the name of an exception, such as 'IndexError', got 'an error'",
            ),
            (
                {"signature": SIGNATURE | {"caused": "outputs = 3"}},
                "signature.caused: expected a text that stands in train.py, got 'outputs = 3'",
            ),
            (
                {"symptom": "silent"},
                "signature.exception: unknown key; expected metric, comparison, value, seen",
            ),
            (
                {"signature": {}},
                "signature.exception: missing; expected the name of an exception, such as 'IndexError'",
            ),
            (
                {"recovery": RECOVERY | {"metric": "eval accuracy"}},
                "recovery.metric: expected a metric's name, such as 'eval_accuracy', got 'eval accuracy'",
            ),
            (
                {"recovery": RECOVERY | {"comparison": "=="}},
                "recovery.comparison: expected '<', '<=', '>' or '>=', got '=='",
            ),
            ({"recovery": RECOVERY | {"value": "high"}}, "recovery.value: expected a number, got 'high'"),
            (
                {"manifest": 'id = "04"\ntitle "x"\n'},
                "not valid TOML: Expected '=' after a key in a key/value pair (at line 2, column 7)",
            ),
        ],
    )
    def test_a_mistake_is_named_with_its_file_and_key(
        self, zoo: Any, changes: dict[str, Any], message: str
    ) -> None:
        zoo.cage(**changes)
        with pytest.raises(CatalogueError) as raised:
            load_catalogue(zoo.root)
        assert str(raised.value) == f"{MANIFEST}: {message}"

    def test_two_exhibits_cannot_share_an_id(self, zoo: Any) -> None:
        zoo.cage("04_first")
        zoo.cage("04_second")
        with pytest.raises(CatalogueError) as raised:
            load_catalogue(zoo.root)
        assert str(raised.value) == "bugs/04_second/exhibit.toml: id: '04' is already taken by bugs/04_first"

    def test_the_manifest_must_be_there(self, zoo: Any) -> None:
        (zoo.cage().parent / "exhibit.toml").unlink()
        with pytest.raises(CatalogueError) as raised:
            load_catalogue(zoo.root)
        assert str(raised.value) == f"{MANIFEST}: missing; every exhibit needs its manifest"

    def test_the_broken_script_must_be_there(self, zoo: Any) -> None:
        zoo.cage().unlink()
        with pytest.raises(CatalogueError) as raised:
            load_catalogue(zoo.root)
        assert str(raised.value) == (
            "bugs/04_wrong_label_count/train.py: missing; every exhibit needs its broken script"
        )

    def test_the_solution_must_be_there(self, zoo: Any) -> None:
        zoo.cage()
        (zoo.root / "solutions/04_wrong_label_count/train.py").unlink()
        with pytest.raises(CatalogueError) as raised:
            load_catalogue(zoo.root)
        assert str(raised.value) == (
            f"{MANIFEST}: no solution: expected solutions/04_wrong_label_count/train.py, the fixed script"
        )

    def test_text_that_is_not_utf8_is_a_broken_manifest(self, zoo: Any) -> None:
        (zoo.cage().parent / "exhibit.toml").write_bytes(b'title = "\xff"')
        with pytest.raises(CatalogueError) as raised:
            load_catalogue(zoo.root)
        assert str(raised.value) == (
            f"{MANIFEST}: cannot be read: 'utf-8' codec can't decode byte 0xff in position 9: invalid start byte"
        )


class TestSurvey:
    def test_one_broken_manifest_does_not_hide_the_others(self, zoo: Any) -> None:
        zoo.cage("01_first")
        zoo.cage("02_second", stage="loss")
        zoo.cage("03_third")
        exhibits, broken = survey(zoo.root)
        assert list(exhibits) == ["01", "03"]
        assert [error.folder for error in broken] == ["02_second"]

    def test_a_script_that_its_reader_repairs_still_has_its_cage(self, zoo: Any) -> None:
        zoo.cage().write_text('OUTPUTS = 3\nprint("eval_accuracy=0.7")\n')
        exhibits, broken = survey(zoo.root)
        assert (list(exhibits), broken) == (["04"], [])


class TestFind:
    @pytest.mark.parametrize(
        "name",
        [
            *("4", "04", "bug-04", "fix-04", "bug-4", " BUG-04 ", "04_wrong_label_count"),
            *("bugs/04_wrong_label_count/", "bugs/04_wrong_label_count/train.py"),
        ],
    )
    def test_an_exhibit_answers_to_all_its_names(self, zoo: Any, name: str) -> None:
        zoo.cage()
        assert find(load_catalogue(zoo.root), name).id == "04"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("40", "no exhibit is called '40'; there are 01, 04"),
            ("wrong_label", "no exhibit is called 'wrong_label'; did you mean 04_wrong_label_count?"),
            ("04_wrong_labels", "no exhibit is called '04_wrong_labels'; did you mean 04_wrong_label_count?"),
            ("xyz", "no exhibit is called 'xyz'; there are 01, 04"),
            ("", "no exhibit is called ''; there are 01, 04"),
        ],
    )
    def test_an_unknown_name_is_answered_with_the_near_ones(self, zoo: Any, name: str, message: str) -> None:
        zoo.cage("01_dataset")
        zoo.cage()
        with pytest.raises(UnknownExhibit) as raised:
            find(load_catalogue(zoo.root), name)
        assert str(raised.value) == message

    def test_an_empty_zoo_says_so(self) -> None:
        with pytest.raises(UnknownExhibit) as raised:
            find({}, "04")
        assert str(raised.value) == "no exhibit is called '04'; the zoo is empty"


class TestCondition:
    @pytest.mark.parametrize(
        ("comparison", "holding"), [("<", [1.0]), ("<=", [1.0, 2.0]), (">", [3.0]), (">=", [2.0, 3.0])]
    )
    def test_compares_as_it_says_and_never_with_nan(self, comparison: str, holding: list[float]) -> None:
        signature = Condition("loss", comparison, 2.0)
        values = [1.0, 2.0, 3.0, float("nan")]
        assert [value for value in values if signature.holds(value)] == holding


def test_the_catalogue_needs_the_standard_library_alone() -> None:
    root = Path(__file__).parents[3]
    # -S: no site-packages; -I: no environment variables.
    program = f"import sys; sys.path.insert(0, {str(root)!r}); import bugs.zoo.keeper.catalogue"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
