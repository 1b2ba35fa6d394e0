"""The page that opens a report, with one that `diagnose run` really wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pages.site import DESKTOP, PHONE, SITE, in_the_zoo

SCRIPT = """\
import torch
from torch import nn

torch.manual_seed(0)
rows = [(torch.randn(4), label % 3) for label in range(48)]
loader = torch.utils.data.DataLoader(rows, batch_size=8)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, labels in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "train.py").write_text(SCRIPT)
    in_the_zoo("-m", "diagnostics", "run", "--output", "report.json", "train.py", folder=folder)
    return folder / "report.json"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_report_is_shown_with_its_rules_linked(visit, report, size):
    opened = visit(viewport=size)
    page = opened.open("report")
    page.set_input_files("#report-file", report)
    page.locator("#opened-report h2").wait_for()
    written = json.loads(report.read_text())
    shown = page.inner_text("#opened-report")
    assert [finding["rule"] for finding in written["findings"]] == ["labels-out-of-range"]
    for part in (written["title"], written["findings"][0]["message"], written["findings"][0]["fix"]):
        assert " ".join(part.split()) in " ".join(shown.split())
    assert "IndexError: Target 2 is out of bounds." in shown
    links = page.locator("#opened-report a").evaluate_all("found => found.map(link => link.getAttribute('href'))")
    assert "rules/labels-out-of-range.html" in links
    assert "exhibits/04_wrong_label_count.html" in links
    assert all((SITE / link).is_file() for link in links)
    assert not opened.scrolls_sideways
    page.get_by_text("The traceback", exact=True).click()
    line = f"train.py:{written['crash']['frames'][0]['line']}"
    assert page.locator("#opened-report details[open] th").get_by_text(line).first.is_visible()
    assert not opened.scrolls_sideways
    page.click("#close-report")
    assert page.inner_text("#opened-report") == ""
    assert opened.wrong == []


def test_a_report_that_is_dropped_anywhere_is_opened(visit, report):
    opened = visit()
    page = opened.open("report")
    drop = """text => {
        const data = new DataTransfer();
        data.items.add(new File([text], "report.json"));
        const event = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
        document.querySelector("h1").dispatchEvent(event);
        return event.defaultPrevented;
    }"""
    assert page.evaluate(drop, report.read_text()) is True
    page.locator("#opened-report article.finding").wait_for()
    assert opened.wrong == []


def test_what_a_report_holds_stays_text(visit, report, tmp_path):
    mark = "<img src=x onerror=alert(1)> javascript:alert(1) \x1b[31m\u202e"

    written = json.loads(report.read_text())
    for part in ("title", "script"):
        written[part] += mark
    for finding in written["findings"]:
        finding |= {"message": mark, "fix": mark, "alternatives": [mark], "evidence": {mark: {mark: [mark]}}}
        finding["where"] = {"file": mark, "line": 1, "function": mark}
        finding["rule"] = "constructor"
    written["crash"]["message"] += mark
    written["faults"] = [mark]
    (tmp_path / "report.json").write_text(json.dumps(written))
    opened = visit()
    page = opened.open("report")
    page.set_input_files("#report-file", tmp_path / "report.json")
    page.locator("#opened-report h2").wait_for()
    shown = page.locator("#opened-report")
    assert shown.locator("img, script, iframe").count() == 0
    assert all("javascript:" not in str(link.get_attribute("href")) for link in shown.locator("a").all())
    assert shown.get_by_role("link", name="constructor").count() == 0
    assert r"<img src=x onerror=alert(1)> javascript:alert(1) \x1b[31m\u202e" in shown.inner_text()
    assert opened.wrong == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("log.txt", "epoch 1 loss 0.3", "This is not JSON."),
        ("trainer_state.json", '{"log_history": []}', "This is JSON, but no report of diagnose"),
        ("report.json", '{"version": 2, "findings": []}', "version 2, and this page reads version 1"),
    ],
)
def test_anything_else_is_refused_in_plain_words(visit, tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    opened = visit(viewport=PHONE)
    page = opened.open("report")
    page.set_input_files("#report-file", tmp_path / name)
    page.locator("#opened-report h2").wait_for()
    assert page.inner_text("#opened-report h2") == f"Not opened: {name}"
    assert words in page.inner_text("#opened-report")
    assert opened.wrong == []


def test_a_report_that_is_opened_gets_the_focus_and_deep_evidence_does_no_harm(visit, report, tmp_path):
    depth = 50_000  # of nested lists, which json.dumps would refuse
    written = json.loads(report.read_text())
    written["findings"][0]["evidence"] = {"deep": "HERE"}
    (tmp_path / "report.json").write_text(json.dumps(written).replace('"HERE"', "[" * depth + "]" * depth))
    opened = visit()
    page = opened.open("report")
    page.set_input_files("#report-file", tmp_path / "report.json")
    page.locator("#opened-report article.finding").wait_for()
    assert page.evaluate("() => document.activeElement.innerText") == written["title"]
    assert opened.wrong == []


def test_words_that_are_dragged_are_left_to_the_browser(visit):
    page = visit().open("report")
    drag = """() => {
        const data = new DataTransfer();
        data.setData("text/plain", "a word");
        const event = new DragEvent("dragover", {dataTransfer: data, bubbles: true, cancelable: true});
        document.querySelector("h1").dispatchEvent(event);
        return event.defaultPrevented;
    }"""
    assert page.evaluate(drag) is False
    assert not page.locator("form.dropping").count()
