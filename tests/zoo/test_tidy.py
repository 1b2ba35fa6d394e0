"""Nothing in the zoo is half there: every exhibit is listed, complete, readable and small in its repair."""

from __future__ import annotations

import ast
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from diagnostics.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = load_catalogue(ROOT)
MOST_CHANGED_LINES = 8  # of a solution; what is larger hides which change mattered

each_exhibit = pytest.mark.parametrize("exhibit", CATALOGUE.values(), ids=CATALOGUE)


class TestExhibits:
    def test_every_folder_is_in_the_catalogue(self) -> None:
        named = {path.name for parent in ("bugs", "solutions") for path in (ROOT / parent).glob("[0-9][0-9]*")}
        assert named == {exhibit.folder for exhibit in CATALOGUE.values()}

    def test_every_exhibit_has_its_two_sessions(self) -> None:
        command = [sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), "-l"]
        environment = os.environ | {"NO_COLOR": "1"}
        listed = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment).stdout
        for exhibit in CATALOGUE.values():
            assert f"- bug-{exhibit.id} [bug] -> {exhibit.headline} (" in listed
            assert f"- fix-{exhibit.id} [fix] -> {exhibit.title} (fixed)" in listed

    @each_exhibit
    def test_its_notebook_is_in_the_book(self, exhibit: Exhibit) -> None:
        assert (ROOT / "book" / f"{exhibit.page}.md").is_file()

    @each_exhibit
    def test_its_solution_says_why(self, exhibit: Exhibit) -> None:
        assert len(exhibit.why.read_text().split()) >= 30

    @each_exhibit
    def test_its_rules_are_rules_of_the_library(self, exhibit: Exhibit) -> None:
        assert set(exhibit.rules) <= {rule.name for rule in all_rules()}

    @each_exhibit
    def test_its_hints_differ(self, exhibit: Exhibit) -> None:
        assert len(set(exhibit.hints)) == 3

    @each_exhibit
    def test_its_repair_is_small(self, exhibit: Exhibit) -> None:
        broken, repaired = (
            # The docstring's command names the script itself.
            [line for line in script.read_text().splitlines() if not line.startswith("$ python ")]
            for script in (exhibit.script, exhibit.solution)
        )
        changes = [line for line in difflib.ndiff(broken, repaired) if line.startswith(("- ", "+ "))]
        assert 0 < len(changes) <= MOST_CHANGED_LINES, "\n".join(changes)


class TestScripts:
    @each_exhibit
    def test_a_broken_script_is_read_at_a_sitting(self, exhibit: Exhibit) -> None:
        assert 40 <= len(exhibit.script.read_text().splitlines()) <= 105

    @each_exhibit
    @pytest.mark.parametrize("solution", [False, True], ids=["broken", "solution"])
    def test_a_script_is_linear_and_says_how_to_run_it(self, exhibit: Exhibit, solution: bool) -> None:
        script = exhibit.solution if solution else exhibit.script
        tree = ast.parse(script.read_text())
        docstring = ast.get_docstring(tree) or ""
        assert f"$ python {script.relative_to(ROOT).as_posix()}" in docstring.splitlines()
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert "main" not in names
        assert "argparse" not in imports

    @each_exhibit
    @pytest.mark.parametrize("solution", [False, True], ids=["broken", "solution"])
    def test_a_script_takes_its_seed_from_outside(self, exhibit: Exhibit, solution: bool) -> None:
        text = (exhibit.solution if solution else exhibit.script).read_text()
        assert re.search(r'^SEED = int\(os\.environ\.get\("ZOO_SEED", 0\)\)$', text, re.MULTILINE)


def test_programs_within_the_tests_import_modules_of_the_library_that_exist() -> None:
    """They stand in strings, and those of exhaustive tests run rarely: a module that moved would not be missed."""
    imported = re.compile(r"^\s*(?:from|import) (diagnostics(?:\.\w+)+)", re.M)
    missing = {
        f"{file.relative_to(ROOT)}: {module}"
        for file in (ROOT / "tests").rglob("*.py")
        for module in imported.findall(file.read_text("utf-8"))
        if not any((ROOT / module.replace(".", "/")).with_suffix(ending).exists() for ending in ("", ".py"))
    }
    assert missing == set()
