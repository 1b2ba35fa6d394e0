"""Renderings that put findings next to lines, read back as their readers read them."""

import json
import re

import pytest
from sarif_pydantic import Sarif

from diagnostics import Finding, Report
from diagnostics.facts.where import Where

FOLLOWS = Finding("loss-plateau", "note", "optimizer", "seen", "change")
ERROR = Finding(
    "labels-out-of-range", "error", "model", "100% of the labels: 0,\nand 2", "num_labels=3", step=3,
    where=Where("my code/train.py", 31, "main"), alternatives=("relabel",), consequences=(FOLLOWS,),
)  # fmt: skip
NOWHERE = Finding("dead-units", "warning", "model", "seen", "change")
IN_A_CELL = Finding("unused-input", "note", "data", "seen\x1b[2J", "change", where=Where("In[3]", 2, "<module>"))
REPORT = Report("ran train.py", (ERROR, NOWHERE, IN_A_CELL), script="train.py", exit_code=0)

# The patterns of VS Code's problem matchers $gcc and GitHub's runner, in Python's syntax.
GCC = re.compile(r"^(.*?):(\d+):(\d*):?\s+(?:fatal\s+)?(warning|error):\s+(.*)$")
COMMAND = re.compile(r"^::(?P<name>\w+) (?P<properties>.*?)::(?P<message>.*)$")


def decoded(text: str, properties: bool = False) -> str:
    """Decode as actions/runner does: a property's own escapes first, the percent sign last."""
    escapes = {"%0D": "\r", "%0A": "\n"} | ({"%3A": ":", "%2C": ","} if properties else {}) | {"%25": "%"}
    for escape, character in escapes.items():
        text = text.replace(escape, character)
    return text


def test_a_compilers_matcher_reads_the_concise_lines():
    error, warning, note, counts = REPORT.rendered("concise").splitlines()
    assert GCC.match(error).groups() == (
        "my code/train.py", "31", "", "error", "100% of the labels: 0, and 2 [labels-out-of-range]",
    )  # fmt: skip
    assert warning == "train.py: warning: seen [dead-units]"
    assert note == r"In[3]:2: note: seen\x1b[2J [unused-input]"
    assert counts == "1 error, 1 warning, 1 note."


def test_github_reads_file_line_and_every_line_of_the_advice():
    commands = [COMMAND.match(line) for line in REPORT.rendered("github").splitlines()[:-1]]
    properties = [
        {
            name: decoded(value, properties=True)
            for name, value in (pair.split("=", 1) for pair in command["properties"].split(","))
        }
        for command in commands
    ]
    assert [command["name"] for command in commands] == ["error", "warning", "notice"]
    assert properties == [
        {"file": "my code/train.py", "line": "31", "title": "labels-out-of-range"},
        {"file": "train.py", "line": "1", "title": "dead-units"},
        {"title": "unused-input"},
    ]
    assert decoded(commands[0]["message"]).splitlines() == [
        "100% of the labels: 0,", "and 2", "fix: num_labels=3", "or: relabel", "It also explains: loss-plateau",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["a,b:c", "50%2C", "::error::x", "x\r\n::set-output name=a::b"])
def test_nothing_in_a_message_ends_or_begins_a_command(text):
    report = Report(
        "ran", (Finding("dead-units", "warning", "model", text, "x", where=Where("a:b,c.py", 1, "f")),)
    )
    command, _ = report.rendered("github").splitlines()
    assert decoded(COMMAND.match(command)["message"]).startswith(text.replace("\r\n", "\n"))


def test_sarif_is_read_by_its_own_model():
    (run,) = Sarif.model_validate_json(REPORT.rendered("sarif")).runs
    assert [(one.rule_id, one.level.value) for one in run.results] == [
        ("labels-out-of-range", "error"), ("dead-units", "warning"), ("unused-input", "note"),
    ]  # fmt: skip
    place = run.results[0].locations[0].physical_location
    assert (place.artifact_location.uri, place.region.start_line) == ("my%20code/train.py", 31)
    assert not run.results[2].locations
    assert [rule.id for rule in run.tool.driver.rules] == [one.rule_id for one in run.results]


@pytest.mark.parametrize(
    ("file", "uri"),
    [("/home/a b/train.py", "file:///home/a%20b/train.py"), (r"C:\code\train.py", "file:///C:/code/train.py")],
)
def test_an_absolute_path_is_a_uri_in_sarif(file, uri):
    report = Report("ran", (Finding("dead-units", "warning", "model", "seen", "x", where=Where(file, 2, "f")),))
    (result,) = json.loads(report.rendered("sarif"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_report_without_findings_says_what_that_rests_on():
    report = Report("ran train.py", script="train.py", judged=frozenset({"dead-units"}))
    assert report.rendered("concise") == report.rendered("github") == "Nothing found. 1 rule could be checked."


def test_a_file_is_saved_by_its_ending(tmp_path):
    assert json.loads(REPORT.save(tmp_path / "report.sarif").read_text())["version"] == "2.1.0"


def test_columns_are_passed_on_where_they_are_known():
    where = Where("train.py", 31, "main", end_line=32, column=5, end_column=9)
    report = Report("ran", (Finding("dead-units", "warning", "model", "seen", "x", where=where),))
    assert GCC.match(report.rendered("concise").splitlines()[0])[3] == "5"
    assert "file=train.py,line=31,col=5," in report.rendered("github")
    (result,) = Sarif.model_validate_json(report.rendered("sarif")).runs[0].results
    region = result.locations[0].physical_location.region
    assert (region.start_line, region.start_column, region.end_line, region.end_column) == (31, 5, 32, 9)
