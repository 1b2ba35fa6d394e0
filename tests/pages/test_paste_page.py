"""The page that takes a traceback, with the tracebacks that the exhibits' scripts really end with."""

from __future__ import annotations

import pytest

from bugs.zoo.keeper.catalogue import ExceptionSignature, load_catalogue
from tests.pages.site import PHONE, ROOT, SITE, in_the_zoo

THROWING = [e for e in load_catalogue(ROOT).values() if isinstance(e.signature, ExceptionSignature)]
# What the words alone say of two cages: not whose memory it was, nor what the shapes of all inputs mean together.
IN_WORDS = {"08": "out-of-memory", "09": "shape-mismatch"}
TRACEBACK = """\
import sys
from pathlib import Path
from book.panels import said
from bugs.zoo.keeper.catalogue import load_catalogue
exhibit = load_catalogue(Path.cwd())[sys.argv[1]]
stderr = said(exhibit, exhibit.script).stderr
print(stderr[stderr.index("Traceback (most recent call last)"):])
"""
OWN = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 12, in <module>
    rate = settings["rates"]
KeyError: 'rates'
"""


@pytest.mark.parametrize("exhibit", THROWING, ids=lambda exhibit: exhibit.id)
def test_the_traceback_of_a_cage_leads_to_its_rule(visit, exhibit):
    opened = visit(viewport=PHONE)
    page = opened.open("paste")
    page.fill("#pasted", in_the_zoo("-c", TRACEBACK, exhibit.id))
    rule = page.locator("#explained p.rule a")
    rule.wait_for()
    assert page.locator("#explained > :first-child").get_attribute("class") == "verdict"
    if exhibit.id in IN_WORDS:
        assert rule.inner_text() == IN_WORDS[exhibit.id]
    else:
        assert rule.inner_text() in exhibit.rules
        assert page.locator(f"#explained a[href='{exhibit.page}.html']").count() == 1
    links = page.locator("#explained a").evaluate_all("found => found.map(link => link.getAttribute('href'))")
    assert all((SITE / link).is_file() for link in links)
    assert not opened.scrolls_sideways
    assert opened.wrong == []
    assert "?" not in page.url
    assert "#" not in page.url


def test_a_failure_of_your_own_is_not_known_and_is_forgotten_when_asked(visit):
    opened = visit()
    page = opened.open("paste")
    page.fill("#pasted", OWN)
    page.locator("#explained p.verdict").wait_for()
    assert page.locator("#explained p.verdict").inner_text() == "This page does not know the message."
    assert "Start at the last line of your own code: /home/ada/project/train.py, line 12." in page.inner_text(
        "#explained"
    )
    page.click("#forget")
    assert page.inner_text("#explained") == page.input_value("#pasted") == ""
    assert opened.wrong == []


def test_what_is_pasted_stays_text(visit):
    opened = visit()
    page = opened.open("paste")
    page.fill("#pasted", OWN.replace("/home/ada", "/home/<img src=x onerror=alert(1)>"))
    page.locator("#explained p.verdict").wait_for()
    assert "<img src=x onerror=alert(1)>" in page.inner_text("#explained")
    assert page.locator("#explained img").count() == 0
    assert opened.wrong == []
