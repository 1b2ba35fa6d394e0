"""`diagnose notebook`, as a person calls it."""

import json

import pytest

from diagnostics.cli.main import main
from tests.support.notebooks import numbered, write

BROKEN = [(1, "import math"), (4, "print(math.pi * radius)")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_finding_is_printed_and_makes_the_exit_code_1(tmp_path, capsys):
    write(tmp_path / "area.ipynb", *BROKEN)
    assert main(["notebook", "area.ipynb"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("checked area.ipynb, 2 code cells\n")
    assert "warning: name-before-definition" in printed
    assert "area.ipynb, cell 2:1" in printed
    assert "1 warning." in printed


def test_a_sound_notebook_exits_with_0(tmp_path, capsys):
    write(tmp_path / "area.ipynb", *numbered("import math", "math.pi"))
    assert main(["notebook", "area.ipynb"]) == 0
    assert "Nothing found." in capsys.readouterr().out


def test_json_html_and_markdown(tmp_path, capsys):
    write(tmp_path / "area.ipynb", *BROKEN)
    assert main(["notebook", "area.ipynb", "--format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["rule"], finding["stage"]) == ("name-before-definition", "reproducibility")
    assert main(["notebook", "area.ipynb", "--format", "html"]) == 1
    assert "reads `radius`, but no cell" in capsys.readouterr().out
    assert main(["notebook", "area.ipynb", "--format", "markdown"]) == 1
    assert "### warning: name-before-definition" in capsys.readouterr().out


def test_what_the_project_ignores_is_left_out(tmp_path, capsys):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.diagnostics.ignore]\nname-before-definition = "our platform defines radius"\n'
    )
    write(tmp_path / "area.ipynb", *BROKEN)
    assert main(["notebook", "area.ipynb"]) == 0
    assert "Ignored: name-before-definition (our platform defines radius)." in capsys.readouterr().out


def test_bad_input_is_told_in_one_line(tmp_path, capsys):
    assert main(["notebook", "missing.ipynb"]) == 2
    assert capsys.readouterr().err == "diagnose: missing.ipynb cannot be read: No such file or directory.\n"
