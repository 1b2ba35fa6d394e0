"""The page of the recall shows the figures of the record."""

from __future__ import annotations

import json
from pathlib import Path

from book.generated.recall import ANSWERS, VERDICTS, recall_page

REPORTS = Path(__file__).resolve().parents[3] / "recall" / "blind_reports.json"
BLIND = Path(__file__).resolve().parents[3] / "recall" / "blind.json"

UNNAMED = "a public notebook or notes in a repository that is not known"

MEASURED = {
    "date": "2026-11-22",
    "versions": {"torch": "2.13.0", "keras": "3.15.0"},
    "rules": {
        "clip-after-step": {"programs": 3, "named": 3, "first": 2, "noted": 0},
        "future-leak": {"programs": 1, "named": 0, "first": 0, "noted": 0},
    },
    "missed": {"no_mask_at_all": {"wanted": "future-leak", "reported": [], "reason": "needs tokens"}},
    "healthy": 4,
    "alarmed": {},
}


def test_gives_the_figures_and_lists_what_was_missed() -> None:
    page = recall_page(MEASURED)
    assert "- **Named first** 2 of 4 bugs (50%)" in page
    assert "- **False alarms** 0 of 4 healthy programs got an error or a warning" in page
    assert "- **Measured** 2026-11-22, on a CPU, with torch 2.13.0, keras 3.15.0" in page
    assert "| [clip-after-step](rules/clip-after-step.md) | 3 | 3 | 2 | 0 |" in page
    assert "| no mask at all | [future-leak](rules/future-leak.md) | nothing | needs tokens |" in page


def test_links_only_rules_that_there_are() -> None:
    rows = {"a-rule-to-come": {"programs": 1, "named": 0, "first": 0, "noted": 0}}
    assert "| a-rule-to-come | 1 | 0 | 0 | 0 |" in recall_page({**MEASURED, "rules": rows})


def test_has_a_table_of_false_alarms_only_if_there_are_any() -> None:
    assert "## False alarms" not in recall_page(MEASURED)
    page = recall_page({**MEASURED, "alarmed": {"masked_language_model": ["not-learning"]}})
    assert "| masked language model | not-learning |" in page


def test_shows_how_the_functions_fared() -> None:
    assert "## By function" not in recall_page(MEASURED)
    tried = {"compare": {"healthy": 5, "silent": 5, "broken": 6, "named": 4}}
    assert "| `compare` | 5 | 5 | 6 | 4 |" in recall_page({**MEASURED, "functions": tried})


def test_counts_the_verdicts_of_a_blind_round() -> None:
    row = {"stack": "pytorch", "domain": "tabular", "source": "https://example.org/1", "cause": "a rate of 0"}
    broken = [
        {**row, "name": "house_prices", "said": ["learning-rate-too-low"], "verdict": "named"},
        {**row, "name": "two_heads", "said": [], "verdict": "silent"},
    ]
    page = recall_page(MEASURED, [{"round": "one", "broken": broken, "healthy": 2, "alarmed": {}}])
    assert "| one | 2 | 1 | 0 | 1 | 0 | 2 | 0 |" in page
    assert "| [two heads](https://example.org/1), pytorch | tabular | a rate of 0 | nothing | silent |" in page


def test_every_blind_round_on_record_is_complete() -> None:
    for tried in json.loads(BLIND.read_text("utf-8")):
        assert {"round", "date", "commit", "broken", "healthy", "alarmed"} <= tried.keys()
        for row in tried["broken"]:
            assert row["verdict"] in VERDICTS, row["name"]
            assert row["source"].startswith("https://"), row["name"]
            assert (row["verdict"] == "silent") == (row["said"] == []), row["name"]


def test_every_round_of_reports_on_record_is_complete_and_counted() -> None:
    rounds = json.loads(REPORTS.read_text("utf-8"))
    for tried in rounds:
        assert {"round", "date", "commit"} <= tried.keys()
        assert {row["verdict"] for row in tried["reports"]} <= set(ANSWERS)
        assert all(row["source"].startswith(("https://", UNNAMED)) and row["library"] for row in tried["reports"])
    assert "| 2026-11-28 | 40 | 27 | 7 | 2 | 4 |" in recall_page(MEASURED, reports=rounds)


def test_the_share_of_findings_with_a_line_is_shown_once_measured():
    measured = {**MEASURED, "located": {"named": 40, "of": 50}}
    assert "- **Lines** 40 of 50 errors and warnings about a line of the script name it" in recall_page(measured)
