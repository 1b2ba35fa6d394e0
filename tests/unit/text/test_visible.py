"""Strings of the user's program in a report: none steers a page or a terminal, and none is endless."""

import io
import re

import pytest
from rich.console import Console

from diagnostics.api.gpu import tables
from diagnostics.engine.finding import Finding
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash import FrameFacts as Line
from diagnostics.facts.gpu import CardFacts, Holder
from diagnostics.facts.nonfinite import FrameFacts, ValueRange
from diagnostics.facts.training import TraceFacts
from diagnostics.facts.where import Where
from diagnostics.report.contents import StageResult
from diagnostics.report.html.page import page
from diagnostics.report.report import Report
from diagnostics.text.visible import MAX_CHARACTERS, shortened, visible

# Renames the window, clears the screen, turns what follows round, hides, and cannot be encoded.
EVIL = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u2066\u200b\x9b31m\x00\ud800"


def hostile(text):
    """A report with `text` wherever a string of the user's can stand."""
    finding = Finding(
        "loss-plateau", "error", "optimizer", f"model {text} stalls\ntable {text}", f"rename {text}",
        evidence={text: [text, {text: text}]}, where=Where(f"{text}.py", 3, text), step=2,
    )  # fmt: skip
    some = ValueRange(0.0, 1.0)
    return Report(
        f"examined {text}",
        (finding,),
        (StageResult("loss", "passed", text), StageResult("model", "failed", text)),
        {"overfitting": text},
        crash=CrashFacts("ValueError", f"{text} is wrong", (Line(f"{text}.py", 3, text, text, True),), True, text),
        faults=(f"Traceback\n{text}",),
        script=f"{text}.py",
        exit_code=1,
        ignored={"dead-units": text},
        ignored_in_vain=(text,),
        traces=(TraceFacts(2, (FrameFacts(text, text, "float32", None, some, some),)),),
    )


def in_a_terminal(renderable):
    """What is written to a terminal, without rich's own colours."""
    console = Console(
        file=io.StringIO(), force_terminal=True, width=100, color_system="truecolor", legacy_windows=False
    )
    console.print(renderable)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())


class TestReport:
    @pytest.mark.parametrize("render", [page, str, in_a_terminal], ids=["html", "text", "terminal"])
    def test_shows_control_and_direction_characters_as_escapes(self, render):
        shown = render(hostile(EVIL))
        assert visible(shown) == shown
        assert "gnp.exe" in shown
        assert "\\u202e" in shown
        shown.encode("utf-8")

    def test_page_shortens_what_is_long_and_says_how_long_it_is(self):
        long = "start" + "x" * 1_000_000 + "end"
        shown = page(hostile(long))
        assert len(shown) < 30 * (MAX_CHARACTERS + 1000)
        assert "start" in shown
        assert "end" in shown
        assert "of 1,000,008 characters left out]" in shown

    def test_terminal_shortens_messages(self):
        shown = in_a_terminal(hostile("x" * 1_000_000 + "end"))
        assert re.search(r"of\s+1,000,0\d\d\s+characters\s+left\s+out\]", shown)

    def test_leaves_ordinary_text_alone(self):
        for text in ("naïve café ≠ 模型 ✓", "مدل", "می‌خواهم", "👩‍💻", "tab\tnewline\n"):
            assert visible(text) == text
            assert shortened(text) == text


class TestVisible:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("\x1b[31m", "\\x1b[31m"),
            ("a\r\nb\rc", "a\nb\\x0dc"),
            ("\u202eabc\u2069", "\\u202eabc\\u2069"),
            ("\ud83d", "\\ud83d"),
            ("\x9b\x7f\ufeff", "\\x9b\\x7f\\ufeff"),
        ],
    )
    def test_escapes(self, text, shown):
        assert visible(text) == shown


class TestShortened:
    @pytest.mark.parametrize("length", [0, 99, 100, 101, 5000])
    def test_keeps_both_ends(self, length):
        text = "".join(chr(97 + n % 26) for n in range(length))
        short = shortened(text, 100)
        assert (short == text) == (length <= 100)
        if length > 100:
            assert short.startswith(text[:66])
            assert short.endswith(text[-33:])
            assert f"[{length - 99:,} of {length:,} characters left out]" in short


def test_a_process_cannot_steer_the_terminal_of_whoever_asks_for_the_cards():
    holder = Holder(pid=7, user="[red]eve", size=1, frameworks=(), command=f"[/x] [bold] {EVIL}")
    card = CardFacts(index=0, name="Card", total=10, free=5, holders=(holder,))
    shown = "".join(map(in_a_terminal, tables((card,))))
    assert visible(shown) == shown
    assert "[red]eve" in shown
    assert "[/x] [bold]" in shown
