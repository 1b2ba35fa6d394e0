"""Reads reports that were saved as JSON, and prints them again."""

import json

import pytest

from diagnostics import InvalidInput
from diagnostics.cli.main import main
from diagnostics.report.saved import read_report

from .test_schema import WHOLE


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(WHOLE.to_json())
    return path


def test_a_report_reads_as_it_was_written(file):
    written, read = json.loads(WHOLE.to_json()), json.loads(read_report(file).to_json())
    assert {name for name in written if written[name] != read[name]} == {"fingerprint"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 9}, "is a report of version 9, and this diagnose reads version 1. Read it with the version"),
        ({"findings": [{}]}, "is no report as this diagnose writes it (KeyError: 'where')"),
        ({"stages": [{"name": "batch"}]}, "is no report as this diagnose writes it (TypeError: "),
    ],
)
def test_another_layout_is_refused(file, changes, said):
    file.write_text(json.dumps({**json.loads(WHOLE.to_json()), **changes}))
    with pytest.raises(InvalidInput) as raised:
        read_report(file)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"), [("{", "is not JSON: "), ("[]", "is not a report of diagnose. Pass what")]
)
def test_another_file_is_refused(file, text, said):
    file.write_text(text)
    with pytest.raises(InvalidInput, match=said):
        read_report(file)


class TestShow:
    def test_prints_text_and_exits_with_1(self, file, capsys):
        assert main(["show", str(file)]) == 1
        assert "warning: dead-units" in capsys.readouterr().out

    def test_the_name_of_the_output_decides_the_format(self, file, tmp_path, capsys):
        assert main(["show", str(file), "--output", str(tmp_path / "report.sarif")]) == 1
        assert json.loads((tmp_path / "report.sarif").read_text())["version"] == "2.1.0"
        assert capsys.readouterr().out == ""

    def test_writes_a_page(self, file, capsys):
        assert main(["show", str(file), "--format", "html"]) == 1
        assert "dead-units" in capsys.readouterr().out

    def test_an_output_that_cannot_be_written_is_a_mistake_of_the_call(self, file, tmp_path, capsys):
        assert main(["show", str(file), "--output", str(tmp_path / "no" / "r.txt")]) == 2
        assert "r.txt cannot be written: No such file or directory." in capsys.readouterr().err
