"""The published schema of the JSON report, against reports with every part."""

import json
from dataclasses import fields
from pathlib import Path
from typing import get_args

import jsonschema
import numpy as np
import pytest

import diagnostics
from diagnostics import Finding, Report
from diagnostics.engine.finding import SEVERITIES, STAGES
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.library_messages import LibraryMessage
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.facts.step_times import PARTS, StepTimes
from diagnostics.facts.training import StartFacts
from diagnostics.facts.where import Where
from diagnostics.report.contents import StageResult, Status
from diagnostics.report.fingerprint import TrainingFingerprint

SCHEMA = json.loads((Path(diagnostics.__file__).parent / "report" / "report.schema.json").read_text())
FOLLOWS = Finding("loss-plateau", "note", "optimizer", "seen", "change")
FINDING = Finding(
    "dead-units", "warning", "model", "seen", "change", evidence={"share": float("nan")}, step=3,
    where=Where("train.py", 3, "main"), alternatives=("or that",), consequences=(FOLLOWS,),
)  # fmt: skip
CRASH = CrashFacts("ValueError", "no", (FrameFacts("train.py", 3, "main"),), live=True)
START = StartFacts({"lr": 0.1}, {"seed of torch": 0}, {"random": "00"}, {"0.bias": "01"}, {0: ("02",)})
TRAINING = TrainingFingerprint(
    {"Python": "3.13.1"}, START, {"batch size": 4}, steps=np.array([0, 1]), losses=np.array([0.7, np.nan]),
    rates=np.array([0.1, 0.1]), batches=np.array([7, 0], np.uint64), total_steps=2,
)  # fmt: skip
WHOLE = Report(
    "ran train.py", (FINDING,), (StageResult("batch", "passed", "seen"),), {"future-leak": "needs more"},
    crash=CRASH, faults=("failed",), script="train.py", exit_code=1, ignored={"dead-units": "on purpose"},
    ignored_in_vain=("future-leak",), known=("loss-plateau",), settings=("a list",), rank=RankNotes(1, 2, "node"),
    library_messages=(LibraryMessage("torch", "UserWarning", "seen", 2, Where("train.py", 3, "main")),),
    time=StepTimes(20, 5, {"loader": 1.5, "forward": 0.5}),
    fingerprints=(TRAINING,),
)  # fmt: skip


@pytest.mark.parametrize("report", [Report("examined"), WHOLE], ids=["empty", "whole"])
def test_report_is_as_published(report):
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(report.to_json()))


def test_every_field_is_described():
    written = json.loads(WHOLE.to_json())
    described = SCHEMA["$defs"]
    assert set(written) == set(SCHEMA["properties"])
    assert set(written["findings"][0]) == set(described["finding"]["properties"])
    assert set(written["stages"][0]) == {field.name for field in fields(StageResult)}
    measured = SCHEMA["properties"]["time"]["anyOf"][1]["properties"]
    assert set(written["time"]) == set(measured)
    assert all(f"`{part}`" in measured["shares"]["description"] for part in PARTS)
    assert set(written["crash"]) == set(described["crash"]["properties"])
    assert set(written["fingerprint"]["trainings"][0]) == set(described["training"]["properties"])


def test_names_are_those_of_the_library():
    finding = SCHEMA["$defs"]["finding"]["properties"]
    assert finding["severity"]["enum"] == list(SEVERITIES)
    assert finding["stage"]["enum"] == list(STAGES)
    assert SCHEMA["$defs"]["stage"]["properties"]["status"]["enum"] == list(get_args(Status))


def test_another_report_is_refused():
    with pytest.raises(jsonschema.ValidationError, match="'fatal' is not one of"):
        jsonschema.validate({**WHOLE.as_dict(), "findings": [{**FINDING.as_dict(), "severity": "fatal"}]}, SCHEMA)
