"""What is no notebook of Python is refused in plain words."""

import json

import pytest

import diagnostics
from diagnostics.collectors.notebook import file
from diagnostics.collectors.notebook.file import code_cells
from diagnostics.errors import InvalidInput
from tests.support.notebooks import PYTHON, code, write


def refused(path):
    with pytest.raises(InvalidInput) as raised:
        code_cells(path)
    return str(raised.value).replace(str(path), path.name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "n.ipynb is not a notebook: it is empty."),
        ("{", "n.ipynb is not a notebook: it is no JSON (Expecting property name enclosed in double quotes: "),
        ("[1]", "n.ipynb is JSON, but not a notebook: it holds a list, not an object with cells."),
        (
            '{"a": 1}',
            "n.ipynb is JSON, but not a notebook: it has no list of cells. Pass a file that Jupyter has ",
        ),
        (
            '{"nbformat": 3, "worksheets": [{"cells": []}]}',
            "n.ipynb is a notebook of format 3, from before 2015. Convert it first: jupyter nbconvert --to",
        ),
        (
            '{\n<<<<<<< HEAD\n"cells": []\n=======\n>>>>>>> theirs\n}',
            "n.ipynb is not a notebook: it holds the marks of a merge conflict of git. Resolve that first.",
        ),
        (
            json.dumps({"cells": [], "nbformat": 4, "metadata": {"language_info": {"name": "R"}}}),
            "n.ipynb is a notebook of R. Only notebooks of Python can be checked.",
        ),
        (
            json.dumps({"cells": [], "nbformat": 4, "metadata": {"kernelspec": {"language": "julia"}}}),
            "n.ipynb is a notebook of julia. Only notebooks of Python can be checked.",
        ),
        (
            json.dumps(
                {
                    "cells": [],
                    "nbformat": 4,
                    "metadata": {"language_info": {"name": "python"}, "kernelspec": {"language": "sage"}},
                }
            ),
            "n.ipynb is a notebook of sage. Only notebooks of Python can be checked.",
        ),
        ("[" * 100_000, "n.ipynb is not a notebook: it is no JSON ("),
    ],
)
def test_says_what_a_file_is_instead(tmp_path, text, said):
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    assert refused(path).startswith(said)


def test_says_why_a_file_cannot_be_read(tmp_path, monkeypatch):
    assert refused(tmp_path / "n.ipynb") == "n.ipynb cannot be read: No such file or directory."
    assert "is a folder. Pass a notebook in it" in refused(tmp_path)
    (tmp_path / "n.py").write_text("# %%\nx = 1\n")
    assert refused(tmp_path / "n.py").endswith("If jupytext keeps it, convert it first: jupytext --to ipynb n.py")
    (tmp_path / "n.ipynb").write_bytes(b"\x89PNG\r\n\xff\xfe")
    assert refused(tmp_path / "n.ipynb") == "n.ipynb is not a notebook: it is no text in UTF-8."
    monkeypatch.setattr(file, "LARGEST", 2)
    assert "at most 0 are read. Clear outputs." in refused(tmp_path / "n.ipynb")


def test_refuses_what_is_no_path():
    with pytest.raises(
        InvalidInput, match=r"check_notebook\(\) was given a list. It takes the path of a notebook."
    ):
        diagnostics.check_notebook([])


def test_reads_a_source_as_one_text_and_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "n.ipynb"
    cells = [{"cell_type": "code", "source": "x = 1\nx"}, {"cell_type": "raw", "source": "y"}]
    path.write_text(json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}), encoding="utf-8-sig")
    (cell,) = code_cells(path)
    assert (cell.number, cell.source, cell.count, cell.failed, cell.skipped) == (1, "x = 1\nx", None, False, False)


def test_survives_fields_of_other_kinds(tmp_path):
    strange = {"cell_type": "code", "source": 3, "execution_count": "7", "outputs": "none", "metadata": []}
    path = write(tmp_path / "n.ipynb", strange, {**strange, "source": ["a = ", 1], "execution_count": True})
    assert [(cell.source, cell.count) for cell in code_cells(path)] == [("", None), ("a = ", None)]
    assert diagnostics.check_notebook(path).ok


def test_takes_tags_and_stored_errors(tmp_path):
    cells = code("x", 1, fails=True), code("y", tags=("raises-exception",)), code("z", tags=("skip-execution",))
    found = code_cells(write(tmp_path / "n.ipynb", *cells, metadata=PYTHON))
    assert [(cell.failed, cell.skipped) for cell in found] == [(True, False), (True, False), (False, True)]


def test_an_empty_notebook_is_fine(tmp_path):
    report = diagnostics.check_notebook(write(tmp_path / "n.ipynb"))
    assert report.ok
    assert report.title == "checked n.ipynb, 0 code cells"
