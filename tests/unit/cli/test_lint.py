"""`diagnose lint`, as a person calls it."""

import json

import pytest

from diagnostics.cli.main import main
from tests.support.notebooks import numbered, write

BROKEN = """\
train_set, val_set = random_split(data, [800, 200])
if True:
    train_loader = DataLoader(train_set, shuffle=True)
    val_loader = DataLoader(train_set)
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_prints_one_line_a_finding_and_exits_with_1(tmp_path, capsys):
    (tmp_path / "train.py").write_text(BROKEN)
    assert main(["lint", "train.py"]) == 1
    line, closing = capsys.readouterr().out.splitlines()
    assert line.startswith("train.py:4:5: leaked-evaluation-rows `val_loader` is built from `train_set`, which ")
    assert closing == "1 warning."


def test_reads_folders_but_not_environments(tmp_path, capsys):
    for folder in ("project/src", "project/env/lib", "project/.hidden"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "train.py").write_text(BROKEN)
    (tmp_path / "project/env/pyvenv.cfg").touch()
    assert main(["lint", "project"]) == 1
    (line, _) = capsys.readouterr().out.splitlines()
    assert line.startswith("project/src/train.py:4:5: ")


def test_gives_the_cell_of_a_notebook(tmp_path, capsys):
    write(tmp_path / "train.ipynb", *numbered("%matplotlib inline\nimport torch", BROKEN))
    assert main(["lint", "train.ipynb"]) == 1
    assert capsys.readouterr().out.startswith("train.ipynb:cell 2:4:5: leaked-evaluation-rows ")


def test_reports_every_line_of_one_rule(tmp_path, capsys):
    (tmp_path / "train.py").write_text("F.relu(x)\nF.relu(y)\n")
    assert main(["lint", "train.py"]) == 1
    assert [line[:13] for line in capsys.readouterr().out.splitlines()] == [
        "train.py:1:1:",
        "train.py:2:1:",
        "2 warnings.",
    ]


def test_a_note_exits_with_0(tmp_path, capsys):
    (tmp_path / "train.py").write_text(
        "LabelEncoder().fit_transform(x_train)\nLabelEncoder().fit_transform(x_test)\n"
    )
    assert main(["lint", "train.py"]) == 0
    assert capsys.readouterr().out.endswith("\n1 note.\n")


def test_what_only_names_tell_is_a_note(tmp_path, capsys):
    (tmp_path / "train.py").write_text("if val_loss > best_loss:\n    best_loss = val_loss\n")
    assert main(["lint", "train.py"]) == 0
    assert capsys.readouterr().out.startswith("train.py:1:1: monitored-backwards ")


def test_is_silent_on_an_argmax_of_outputs_whose_shape_only_a_run_knows(tmp_path, capsys):
    (tmp_path / "train.py").write_text("classes = model(x).argmax(1)\n")
    assert main(["lint", "train.py"]) == 0
    assert capsys.readouterr().out == "Nothing found.\n"


def test_writes_json(tmp_path, capsys):
    (tmp_path / "train.py").write_text(BROKEN)
    assert main(["lint", "train.py", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (finding,) = report["findings"]
    assert (finding["rule"], finding["where"]["line"]) == ("leaked-evaluation-rows", 4)
    assert report["stages"] == [{"name": "source", "status": "passed", "detail": "1 file"}]


def test_leaves_out_what_the_project_ignores(tmp_path, capsys):
    (tmp_path / "pyproject.toml").write_text('[tool.diagnostics.ignore]\nleaked-evaluation-rows = "a demo"\n')
    (tmp_path / "train.py").write_text(BROKEN)
    assert main(["lint", "train.py"]) == 0
    assert capsys.readouterr().out == "Nothing found.\nIgnored: leaked-evaluation-rows (a demo).\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("missing.py", None, "missing.py cannot be read: No such file or directory."),
        ("old.py", "x = 1\nprint x\n", "old.py is not valid Python: line 2: Missing parentheses"),
        ("deep.py", f"x = {'a' + '.b' * 900}\n", "deep.py is nested too deeply to be read."),
        ("notes.txt", "", "notes.txt is neither a script (.py) nor a notebook (.ipynb)."),
    ],
)
def test_says_why_a_file_was_not_read(tmp_path, capsys, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    assert main(["lint", name]) == 2
    assert capsys.readouterr().err.startswith(f"diagnose: {said}")


def test_reads_the_others_if_one_cannot_be_parsed(tmp_path, capsys):
    (tmp_path / "old.py").write_text("print x\n")
    (tmp_path / "train.py").write_text(BROKEN)
    assert main(["lint", "."]) == 2
    assert "train.py:4:5: leaked-evaluation-rows" in capsys.readouterr().out
