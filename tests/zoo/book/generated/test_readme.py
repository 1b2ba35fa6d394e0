"""What the README shows agrees with the zoo."""

import html
import re

import pytest

from book.generated.readme import COLUMNS, PICTURE, README, current, report, with_count, with_table

TIME = re.compile(r"\d+\.\d s")


def test_the_table_lists_the_exhibits_there_are():
    assert README.read_text("utf-8") == current(), "run: python -m book.generated.readme"


def test_a_readme_without_the_marks_is_refused():
    with pytest.raises(ValueError, match="needs one pair of marks"):
        with_table("# bug-zoo\n", "| a |")


def test_the_number_of_bugs_is_that_of_the_table():
    readme = README.read_text("utf-8")
    count = len(re.findall(r"^\| `bug-\d+` \|", readme, re.MULTILINE))
    assert f"built around {count} bugs" in readme
    assert with_count("built around\n3 bugs", 7) == "built around\n7 bugs"
    with pytest.raises(ValueError, match="needs one"):
        with_count("# bug-zoo\n", 7)


def test_the_picture_shows_what_diagnose_run_prints():
    shown = html.unescape(re.sub(r"<[^>]+>", "", PICTURE.read_text("utf-8")))
    printed = re.sub(r"\x1b\[[\d;]*m", "", report())
    assert max(map(len, printed.splitlines())) <= COLUMNS
    assert letters(printed) in letters(shown), "run: python -m book.generated.readme"


def letters(text: str) -> str:
    """Leave out spaces, which the picture replaces by positions, and how long the run took."""
    return "".join(TIME.sub("", text.replace("\xa0", " ")).split())
