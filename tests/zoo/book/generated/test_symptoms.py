"""The page that leads from what a reader sees to rules and exhibits."""

import math
import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from book.generated.pages import seen
from book.generated.symptoms import Symptom, load, symptoms_page
from book.generated.thumbnails import Curve, curve_in
from book.panels import CURVE
from bugs.keeper.catalogue import load_catalogue
from diagnostics.rules.registry import all_rules

EXHIBITS = list(load_catalogue(Path(__file__).resolve().parents[4]).values())
PAGE = symptoms_page(load(), EXHIBITS, all_rules())


def test_every_rule_stands_under_a_symptom_and_none_that_there_is_not():
    named = {name for symptom in load() for name in symptom.rules}
    assert named == {rule.name for rule in all_rules()}


def test_no_rule_stands_twice_under_one_symptom():
    assert all(len(set(symptom.rules)) == len(symptom.rules) for symptom in load())


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.id)
def test_every_exhibit_stands_once_with_its_rules(exhibit):
    assert PAGE.count(f"### {seen(exhibit)}\n") == 1
    entry = PAGE.partition(f"### {seen(exhibit)}\n")[2].partition("\n#")[0]
    assert f"[{exhibit.id} {exhibit.title}]({exhibit.page}.ipynb)" in entry
    assert all(f"[{rule}](rules/{rule}.md)" in entry for rule in exhibit.rules)


def test_exhibits_stand_where_their_symptom_is():
    sections = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
    place = {title: sorted(re.findall(r"- \*\*Exhibit\*\* \[(\d\d)", part)) for title, part in sections.items()}
    assert place["The loss is NaN or infinite"] == ["05", "11", "22"]
    assert place["Memory runs out"] == ["07", "08", "14", "36"]
    assert place["The score is too good"] == ["20"]
    assert place["It throws"] == ["01", "02", "03", "04", "09", "17"]
    assert place["It hangs, or its ranks disagree"] == ["31", "33", "34", "35"]


def test_every_question_leads_to_a_section():
    assert re.findall(r"^\d+\. .*\]\(#(\S+)\)$", PAGE, re.MULTILINE) == re.findall(
        r"^\((\S+)\)=$", PAGE, re.MULTILINE
    )


def test_a_broken_run_that_was_noted_is_drawn_under_its_exhibit():
    noted = {"steps": (10, 20, 30), "losses": (2.3, 0.5, float("nan")), "chance": math.log(10)}
    cell = new_code_cell(outputs=[new_output("display_data", {CURVE: noted})])
    curve = curve_in(new_notebook(cells=[new_code_cell(), cell]))
    page = symptoms_page(load(), EXHIBITS, all_rules(), {"12": curve})
    entry = page.partition("[12 ")[0].rpartition("\n### ")[2]
    assert entry.count("<svg") == page.count("<svg") == 1
    assert 'aria-label="Training loss from 2.30 to nan in 30 steps; a constant prediction scores 2.30."' in entry
    assert "nan" not in re.search('points="(.*?)"', entry)[1]


def test_a_loss_that_has_risen_again_is_described_so():
    curve = Curve((1, 2, 3), (2.0, 0.5, 4.0), 2.3)
    assert curve.described.startswith("Training loss from 2.00 to 4.00 in 3 steps, with a minimum of 0.50;")


def test_a_notebook_without_a_broken_run_has_no_curve():
    assert curve_in(new_notebook(cells=[new_code_cell()])) is None


def test_a_rule_that_there_is_not_is_an_error():
    with pytest.raises(KeyError, match="no-such-rule"):
        symptoms_page([Symptom("It throws", "Does it?", "Look.", ("no-such-rule",))], EXHIBITS, all_rules())
