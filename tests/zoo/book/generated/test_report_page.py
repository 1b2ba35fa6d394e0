"""The page that opens a report takes what the report's schema allows, and refuses all else in plain words."""

import copy
import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

from book.generated.pages import rules_script
from bugs.zoo.keeper.catalogue import load_catalogue
from diagnostics import Finding, Report
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.facts.where import Where
from diagnostics.report.contents import StageResult
from diagnostics.rules.registry import all_rules
from diagnostics.text.visible import visible

ROOT = Path(__file__).resolve().parents[4]
SCHEMA = json.loads((ROOT / "diagnostics" / "report" / "report.schema.json").read_text("utf-8"))
FOLLOWS = Finding("loss-plateau", "note", "optimizer", "seen", "change")
FINDING = Finding(
    "dead-units", "warning", "model", "seen", "change", evidence={"share": float("nan")}, step=3,
    where=Where("train.py", 3, "main"), alternatives=("or that",), consequences=(FOLLOWS,),
)  # fmt: skip
WHOLE = Report(
    "ran train.py", (FINDING,), (StageResult("batch", "passed", "seen"),), {"future-leak": "needs more"},
    crash=CrashFacts("ValueError", "no", (FrameFacts("train.py", 3, "main"),), live=True), faults=("failed",),
    script="train.py", exit_code=1, ignored={"dead-units": "on purpose"}, ignored_in_vain=("future-leak",),
    rank=RankNotes(1, 2, "node"),
)  # fmt: skip
OTHERS = (None, True, -1, 2.5, "fatal", [], {}, ["Not a rule"], {"what": 3})


def asked(program, script, question):
    """Return what a program of JavaScript says of a question; it finds the page's script in its first argument."""
    command = ["node", "-e", program, str(ROOT / "book" / "_static" / script)]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def read(texts):
    """Return what the page's script makes of each text: what is wrong with it, or None."""
    program = """
        const {read} = require(process.argv[1]);
        const [texts, schema] = JSON.parse(require("fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify(texts.map(text => read(text, schema).problem ?? null)));
    """
    return asked(program, "report.js", [texts, SCHEMA])


def changed(value):
    """Yield a JSON value with each of its parts left out, or replaced by each of the others."""
    for key in value if isinstance(value, dict) else range(len(value)):
        part = value[key]
        for other in (*OTHERS, ...):
            made = copy.deepcopy(value)
            if other is not ...:
                made[key] = other
            else:
                del made[key]
            yield made
        if isinstance(part, dict | list):
            for made in changed(part):
                yield {**value, key: made} if isinstance(value, dict) else [*value[:key], made, *value[key + 1 :]]


pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def test_reports_of_the_library_are_taken():
    assert read([Report("examined").to_json(), WHOLE.to_json(), "\ufeff" + WHOLE.to_json(None)]) == [None] * 3


def test_what_the_schema_refuses_is_refused_and_nothing_else():
    validator = jsonschema.Draft202012Validator(SCHEMA)
    reports = [made for made in changed(json.loads(WHOLE.to_json())) if {"version", "findings"} <= set(made)]
    problems = read([json.dumps(report) for report in reports])
    valid = [validator.is_valid(report) for report in reports]
    wrong = [
        report for report, problem, good in zip(reports, problems, valid, strict=True) if good != (problem is None)
    ]
    assert not wrong, json.dumps(wrong[0])
    assert 100 < sum(valid) < len(valid) - 500


def test_a_part_that_does_not_fit_is_named():
    report = json.loads(WHOLE.to_json())
    report["findings"][0]["consequences"][0]["severity"] = "fatal"
    assert read([json.dumps(report)]) == [
        "This looks like a report, but not as `diagnose` writes it: findings[0].consequences[0].severity should "
        "be one of error, warning, note."
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "The file is empty."),
        ("<!DOCTYPE html>\n<html></html>", "This is a page of HTML. If it is a report, open it in your"),
        (WHOLE.to_json()[:-9], "This begins like JSON, and does not go on as JSON: perhaps it was cut off"),
        (WHOLE.to_json() * 2, "This begins like JSON, and does not go on as JSON: perhaps it was cut off"),
        (str(WHOLE), "This is not JSON. `diagnose run --output report.json train.py` writes one."),
        ("[1, 2]", "This is JSON, but no report of `diagnose`: a report has a `version` and `findings`."),
        ('"report"', "This is JSON, but no report of `diagnose`: a report has a `version` and `findings`."),
        ('{"log_history": []}', "This is JSON, but no report of `diagnose`: a report has a `version` and"),
        ('{"version": 0, "findings": []}', "This report's layout has the version 0, and this page reads"),
        ('{"version": 2, "findings": []}', "This report's layout has the version 2, and this page reads"),
        ('{"version": 1, "findings": []}', "This looks like a report, but not as `diagnose` writes it: the whole"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_in_plain_words(text, problem):
    (said,) = read([text])
    assert said.startswith(problem)


def test_its_data_names_every_rule_with_its_cages():
    exhibits = list(load_catalogue(ROOT).values())
    script = rules_script(exhibits, all_rules(), SCHEMA)
    data = json.loads(script.removeprefix("window.bugZooReports = ").rstrip(";\n"))
    assert data["schema"] == SCHEMA
    assert set(data["rules"]) == {rule.name for rule in all_rules()}
    assert [page for page, _ in data["rules"]["ragged-batch"]] == ["exhibits/02_unpadded_batches"]


def test_what_cannot_be_seen_is_written_as_in_the_terminal():
    texts = ["\r\n", *(f"a{chr(code)}b" for code in range(0x10000))]
    program = """
        const {visible} = require(process.argv[1]);
        const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify(texts.map(visible)));
    """
    assert asked(program, "dom.js", texts) == [visible(text) for text in texts]
