"""The lines that are quoted under a finding."""

import io
import linecache
import os
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

from diagnostics import Finding, Report
from diagnostics.collectors.shared.script_line import place_of
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.where import Where
from diagnostics.report.code_frames import code_frame, with_code

LINES = ["def train():\n", "    loss = criterion(model(x), y)  # a comment\n", "\n", "    loss.backward()\n"]
CALL = Where("train.py", 2, "train", end_line=2, column=12, end_column=34)


def finding(where=CALL, **given):
    return Finding("dead-units", "warning", "model", "Seen.", "change", where=where, **given)


def test_the_part_that_is_meant_has_carets():
    frame = code_frame(LINES, CALL)
    assert frame.numbered() == [
        "1 | def train():",
        "2 |     loss = criterion(model(x), y)  # a comment",
        "  |            ^^^^^^^^^^^^^^^^^^^^^^",
        "3 |",
    ]
    assert frame.numbered(alone=True) == [
        "2 | loss = criterion(model(x), y)  # a comment",
        "  |        ^^^^^^^^^^^^^^^^^^^^^^",
    ]


def test_a_line_that_is_meant_as_a_whole_has_none():
    whole = replace(CALL, line=4, end_line=4, column=5, end_column=20)
    assert code_frame(LINES, whole).numbered(alone=True) == ["4 | loss.backward()"]
    assert code_frame(LINES, Where("train.py", 4, "train")).numbered() == ["3 |", "4 | loss.backward()"]


def test_an_expression_of_several_lines_is_marked_to_the_end_of_its_first():
    several = replace(CALL, end_line=3, end_column=1)
    assert (
        code_frame(LINES, several)
        .numbered(alone=True)[1]
        .endswith("^" * len("criterion(model(x), y)  # a comment"))
    )


@pytest.mark.parametrize("line", [0, 5, -1])
def test_a_line_that_is_not_there_is_not_quoted(line):
    assert code_frame(LINES, Where("train.py", line, "train")) is None


def test_secrets_are_left_out_and_then_nothing_is_marked():
    secret = "hf_" + "a1B2" * 9
    where = Where("train.py", 1, "<module>", end_line=1, column=1, end_column=8)
    assert code_frame([f'login("{secret}", key)\n'], where).numbered() == ['1 | login("[secret]", key)']


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_wraps(width):
    long = [f"    loss = criterion({', '.join(f'outputs[{n}]' for n in range(40))})\n"]
    where = Where("train.py", 1, "train", end_line=1, column=12, end_column=len(long[0]))
    report = Report("ran", (finding(where, code=code_frame(long, where)),))
    console = Console(width=width, file=io.StringIO())
    console.print(report)
    head, code, carets, message = console.file.getvalue().splitlines()[1:5]
    assert max(map(len, (head, code, carets))) <= min(width, 100)
    assert code.endswith("…")
    assert message.strip() == "Seen."


def quoted(folder, file, since, **report):
    made = with_code(Report("ran", (finding(),), **report), folder / file, str(folder), since)
    return made.findings[0].code


def test_quotes_a_script_as_it_was_when_it_ran(tmp_path):
    (tmp_path / "train.py").write_text("".join(LINES))
    os.utime(tmp_path / "train.py", (1.0, 1.0))
    now = time.time()
    assert quoted(tmp_path, "train.py", now).lines[1] == "    loss = criterion(model(x), y)  # a comment"
    assert quoted(tmp_path, "other.py", now) is None  # nothing says that this file ran
    shown = CrashFacts("ValueError", "no", (FrameFacts("train.py", 2, "train", yours=True),), live=True)
    assert quoted(tmp_path, "train.py", now, crash=shown) is None  # it stands above
    os.utime(tmp_path / "train.py", (now + 9, now + 9))
    assert quoted(tmp_path, "train.py", now) is None


def test_columns_count_characters():
    code = "def here():\n    é = sys._getframe(); return é, len('ü') + place_of(sys._getframe()).column\n"
    names = {"place_of": place_of, "sys": sys, "len": len}
    linecache.cache["made.py"] = (len(code), None, code.splitlines(keepends=True), "made.py")
    exec(compile(code, "made.py", "exec"), names)
    text = code.splitlines()[1]
    assert names["here"]()[1] == 1 + 1 + text.index("place_of(sys")
