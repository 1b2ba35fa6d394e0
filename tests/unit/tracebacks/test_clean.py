"""What terminals, loggers and launchers put around the lines that Python printed."""

import json

import pytest

from diagnostics.collectors.tracebacks import clean
from diagnostics.collectors.tracebacks.clean import streams

PLAIN = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 12, in <module>
    print(loss.item())
RuntimeError: "a" and 'b' differ: C:\\new
"""


def told(text):
    """Return the lines of each process; those without a prefix come first and are then overwritten."""
    return {stream.process: [line.text for line in stream.lines] for stream in streams(text)}


class TestStreams:
    def test_of_a_plain_text_are_one_with_its_lines_counted(self):
        (stream,) = streams("one\r\ntwo\rthree\n\nfour")
        assert stream.process is None
        assert stream.lines == [(1, "one"), (2, "two"), (2, "three"), (3, ""), (4, "four")]

    def test_of_several_ranks_are_told_apart_and_keep_their_numbers(self):
        lines = [f"[rank{n % 2}]: {line}" for line in PLAIN.splitlines() for n in range(2)]
        plain, *ranks = streams("\n".join(["start", *lines, "end"]))
        assert [line.text for line in plain.lines] == ["start", "end"]
        assert {stream.process for stream in ranks} == {"rank 0", "rank 1"}
        assert [[line.number for line in stream.lines] for stream in ranks] == [[2, 4, 6, 8], [3, 5, 7, 9]]
        assert [line.text for line in ranks[0].lines] == PLAIN.splitlines()

    @pytest.mark.parametrize(
        ("prefix", "process"),
        [
            ("[rank3]: ", "rank 3"),
            ("[default1]:", "rank 1"),
            ("2: ", "rank 2"),
            ("[1,5]<stderr>:", "rank 5"),
            ("trainer-1  | ", "trainer-1"),
            ("(train_fn pid=4711, ip=10.0.0.7) ", "train_fn pid=4711, ip=10.0.0.7"),
            ("2026-01-02 10:11:12,345 ERROR trainer: ", None),
            ("2026-01-02T10:11:12.3456789Z ", None),
        ],
    )
    def test_have_the_name_of_their_process(self, prefix, process):
        found = told("".join(f"{prefix}{line}\n" for line in PLAIN.splitlines()))
        assert found.pop(None, [""])[:4] == ([""] if process else PLAIN.splitlines())
        assert found == ({process: PLAIN.splitlines()} if process else {})

    def test_a_stamp_before_the_first_line_alone_is_no_prefix(self):
        text = "".join(f"2026-01-02 10:11:12,345 ERROR {PLAIN}" for _ in range(3))
        (stream,) = streams(text)
        assert len(stream.lines) == 13

    def test_a_mark_before_frames_alone_is_no_prefix(self):
        (stream,) = streams(PLAIN.replace("  File", "> File") * 2)
        assert stream.lines[1].text == '> File "/home/ada/project/train.py", line 12, in <module>'

    @pytest.mark.parametrize("form", [json.dumps, repr, lambda text: json.dumps(json.dumps(text))[3:-3]])
    def test_a_traceback_within_a_string_is_taken_out(self, form):
        (stream,) = streams(f'{{"level": "ERROR", "text": {form(PLAIN)}, "step": 3}}')
        assert [line.text for line in stream.lines][:3] == PLAIN.splitlines()[:3]

    def test_a_path_that_a_terminal_broke_is_whole_again(self):
        broken = PLAIN.replace("project/train", "project/tr\nain")
        (stream,) = streams(broken)
        assert [line.text for line in stream.lines] == PLAIN.split("\n")

    @pytest.mark.parametrize("escape", ["\x1b", "␛", "^[", "\\x1b", "\\u001b", "\\033", ""])
    def test_colours_go_however_their_escape_is_shown(self, escape):
        coloured = PLAIN.replace("Error", f"{escape}[1;35mError{escape}[0m")
        (stream,) = streams(coloured)
        assert [line.text for line in stream.lines] == PLAIN.split("\n")

    def test_brackets_of_the_text_itself_stay(self):
        (stream,) = streams("x[1] and [3m] and [0;1]")
        assert stream.lines[0].text == "x[1] and [3m] and [0;1]"

    def test_of_a_long_text_are_only_what_is_near_a_traceback(self, monkeypatch):
        monkeypatch.setattr(clean, "WHOLE", 1000)
        monkeypatch.setattr(clean, "BEFORE", 50)
        monkeypatch.setattr(clean, "AFTER", 200)
        monkeypatch.setattr(clean, "LONGEST_LINE", 300)
        steps = "".join(f"step {n}\n" for n in range(1000))
        (stream,) = streams(f"{steps}{PLAIN}{steps}{PLAIN}{steps}")
        lines = [line for line in stream.lines if line.text.startswith("Traceback")]
        assert [line.number for line in lines] == [1001, 2005]
        assert 20 < len(stream.lines) < 100

    def test_of_a_long_text_without_any_are_empty(self, monkeypatch):
        monkeypatch.setattr(clean, "WHOLE", 1000)
        (stream,) = streams("step 1\n" * 1000)
        assert stream.lines == []
