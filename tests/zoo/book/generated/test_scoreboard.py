"""The page of the scoreboard shows the record, whole, and judges it as the record's module says."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest

from book.builder.outline import numbers
from book.generated.scoreboard import scoreboard_page
from bugs.zoo.keeper.catalogue import load_catalogue
from tests.scoreboard.record import OURS, Record, Tool, load_tools

ROOT = Path(__file__).parents[4]
EXHIBITS = load_catalogue(ROOT)
RECALL = {
    "rules": {"clip-after-step": {"programs": 5, "first": 3}},
    "missed": {"a_mask": {}},
    "healthy": 4,
    "alarmed": {},
}
NAN = {
    "kind": "NaN in backward",
    "severity": "error",
    "message": "Function 'MulBackward0' | returned nan",
    "times": 3,
}
ADVICE = {"kind": "decay", "severity": "warning", "message": "Weight decay is on.", "times": 1}
SPEED = {"kind": "workers", "severity": "note", "message": "Use more workers.", "times": 1}
STYLE = {"kind": "style", "severity": "warning", "message": "Sort your imports.", "times": 1}
OURS_11 = {"kind": EXHIBITS["11"].rules[0], "severity": "error", "message": "It overflows.", "times": 1}


def said(broken: list, repaired: list, ended: str = "") -> dict:
    return {"broken": {"answers": broken, "ended": ended}, "repaired": {"answers": repaired, "ended": ""}}


@pytest.fixture
def tools() -> dict[str, Tool]:
    torch = {"package": "torch", "frameworks": ("torch",)}
    return {
        OURS: Tool(OURS, "`diagnose run`", "training-diagnostics", ("torch", "keras")),
        "plain": Tool(
            "plain", "A check", **torch, not_asked={"12": "its loop is another"}, advice={"style": "it is no bug"}
        ),
        "anomaly_mode": Tool("anomaly_mode", "Anomaly mode", **torch, names={"11": {"decay": "that is it"}}),
    }


@pytest.fixture
def record() -> Record:
    return Record(
        machine="2 CPU cores, no GPU",
        versions={"torch": "2.13.0"},
        dates={"11": "2026-11-25", "12": "2026-11-26"},
        said={
            OURS: {"11": said([OURS_11], []), "12": said([ADVICE], []), "05": said([], [ADVICE], "ValueError: x")},
            "plain": {"11": said([NAN, ADVICE, SPEED, STYLE], [ADVICE, SPEED]), "12": said([], [])},
            "anomaly_mode": {"11": said([ADVICE], []), "12": said([], [], "NotImplementedError: Bool")},
        },
        cost={
            "date": "2026-11-25",
            "quiet": False,
            "ratios": {"12": {"plain": {"median": 1.5}}, "13": {"plain": {"median": 1.25}}},
        },
    )


class TestMadeUp:
    @pytest.fixture
    def page(self, record: Record, tools: dict[str, Tool]) -> str:
        return scoreboard_page(record, tools, [EXHIBITS[id] for id in ("05", "11", "12")], RECALL)

    def test_counts_what_is_said_of_the_broken_script_alone(self, page: str) -> None:
        assert "| [`diagnose run`](#scoreboard-diagnose-run) | 3 | 2 | 1 | 1 | 0 | ? |" in page
        assert "| [A check](#scoreboard-plain) | 1 | 1 | 0 | 1 | 0 | 1.25 to 1.50 |" in page
        assert "| [Anomaly mode](#scoreboard-anomaly-mode) | 2 | 1 | 1 | 0 | 1 | ? |" in page
        assert "other programs were running" in page

    def test_has_a_row_for_every_cage_and_says_who_was_not_asked(self, page: str) -> None:
        rows = {row.split()[1][1:]: row.split("|")[2:-1] for row in page.splitlines() if row.startswith("| [")}
        fields = {key: [field.strip() for field in row] for key, row in rows.items()}
        assert fields["7.1"] == ["`ValueError`", "silent, *alarm*", "", ""]
        assert fields["7.2"] == ["runs to the end", "**named**", "detected, *alarm*", "**named**"]
        assert fields["8.1"] == ["runs to the end", "detected", "", "fails"]
        assert "Not tested on 8.1: its loop is another." in page

    def test_quotes_each_tool_and_shows_how_it_is_called(self, page: str, tools: dict[str, Tool]) -> None:
        assert (
            "| 7.2 | broken | NaN in backward, 3 times: `Function 'MulBackward0' \\| returned nan` | no |" in page
        )
        assert "| 7.2 | broken | decay: `Weight decay is on.` | no: reported on both scripts |" in page
        assert "| 7.2 | broken | decay: `Weight decay is on.` | yes: that is it |" in page
        assert "| 7.2 | fixed | decay: `Weight decay is on.` |  |" in page
        assert "| 8.1 | broken | *fails*: `NotImplementedError: Bool` |  |" in page
        assert "more workers" not in page
        assert "Sort your imports" not in page
        assert "Not counted, and not in the table: style. It is no bug." in page
        assert "with torch.autograd.detect_anomaly():" in page

    def test_says_what_was_not_measured(self, page: str, record: Record, tools: dict[str, Tool]) -> None:
        assert "- **Measured** 2026-11-25 to 2026-11-26, on 2 CPU cores, no GPU\n" in page
        whole = scoreboard_page(record, tools, [EXHIBITS[id] for id in ("11", "13", "10")], RECALL)
        assert "no GPU; exhibits not measured, or only in part: 6.2, 8.2\n" in whole
        assert "| ? | ? | ? | ? |" in whole

    def test_our_own_recall_stands_beside_it(self, page: str) -> None:
        assert "3 of 5 named first, 1 missed, and 0 false alarms on 4 healthy programs." in page


class TestRecorded:
    """The committed record, and what tools.toml says of it."""

    RECORD, TOOLS = Record.read(), load_tools()

    def test_what_is_said_to_name_a_cause_was_said_of_the_broken_script_alone(self) -> None:
        for tool in self.TOOLS.values():
            for id, kinds in tool.names.items():
                assert set(kinds) <= set(self.RECORD.detected(tool, id)), f"{tool.name} about {id}"
                assert tool.is_asked(EXHIBITS[id])

    def test_the_versions_are_those_that_are_installed_for_it(self) -> None:
        pinned = (ROOT / "tests/scoreboard/requirements.txt").read_text() + (ROOT / "constraints.txt").read_text()
        for package in ("torch", "transformers", *(tool.package for tool in self.TOOLS.values())):
            version = self.RECORD.versions[package].partition("+")[0]
            assert package == "training-diagnostics" or f"\n{package}=={version}\n" in f"\n{pinned}"

    def test_the_page_shows_its_figures(self) -> None:
        recall = json.loads((ROOT / "tests/recall/measured.json").read_text())
        page = scoreboard_page(self.RECORD, self.TOOLS, list(EXHIBITS.values()), recall)
        rows = re.findall(r"^\| \[(\d+\.\d) .+", page, re.MULTILINE)
        assert rows == [numbers()[id] for id in EXHIBITS]
        for name, tool in self.TOOLS.items():
            asked = [each for each in EXHIBITS.values() if tool.is_asked(each) and self.RECORD.has(name, each.id)]
            broken, repaired = (
                {
                    each.id: {
                        one["kind"]
                        for one in self.RECORD.said[name][each.id][version]["answers"]
                        if one["severity"] in ("error", "warning") and one["kind"] not in tool.advice
                    }
                    for each in asked
                }
                for version in ("broken", "repaired")
            )
            detected = sum(bool(broken[each.id] - repaired[each.id]) for each in asked)
            alarms = sum(map(bool, repaired.values()))
            (row,) = (line for line in page.splitlines() if line.startswith(f"| [{tool.title}](#"))
            counts = [field.strip() for field in row.split("|")[2:]]
            assert counts[:2] == [str(len(asked)), str(detected)]
            assert counts[3] == str(alarms)
            assert f"\n{tool.call.rstrip()}\n" in page


def test_a_record_is_the_same_wherever_it_is_made() -> None:
    said = f"Rank 0 ({socket.gethostname()}): no rank has moved since {ROOT / 'bugs' / '31' / 'train.py'}:52."
    record = Record()
    record.keep(OURS, "31", "broken", {"answers": [NAN | {"message": said}], "ended": said})
    kept = record.said[OURS]["31"]["broken"]
    wanted = f"Rank 0: no rank has moved since {Path('bugs', '31', 'train.py')}:52."
    assert (kept["answers"][0]["message"], kept["ended"]) == (wanted, wanted)


def test_the_record_in_the_repository_names_no_folder_of_a_machine() -> None:
    said = json.dumps(Record.read().said)
    assert re.findall(r"(?<![\w:./])/(?:home|root|work|tmp|Users|check)/\S+", said) == []
