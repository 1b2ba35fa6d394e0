"""Any text gives an answer or a refusal in words, in a time that grows with its length and no faster."""

import io
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

import diagnostics
from diagnostics.cli.log_file import read_log
from diagnostics.errors import InvalidInput
from diagnostics.report.report import Report

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 8, in <module>
    main()
  File "/home/ada/.venv/lib/python3.11/site-packages/torch/nn/functional.py", line 3479, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target)
IndexError: Target 10 is out of bounds.
"""
PIECES = [
    *TRACEBACK.splitlines(keepends=True),
    "Traceback (most recent call last)", "File \"", "\", line 3, in f\n", "  + Exception Group ", "╭─── ",
    "│ ❱ 8 ",
    "E   ", "> ", "----> 3 loss.backward()\n", "Cell In[3], line 2\n", "<ipython-input-3-abc> in <module>\n",
    "[rank0]: ", "worker-1 | ", "2026-01-02 10:11:12,345 ERROR ", "\\n", "\\u001b[31m", "\x1b[0m", "\r", "\x00",
    "During handling of the above exception, another exception occurred:\n", "KeyError: 'x'", "RuntimeError: ",
    "CUDA out of memory. Tried to allocate ", "20.00 MiB", "torch.Size([", "Expected ", "size mismatch for ",
    "ChildFailedError", "exitcode: -9", "Killed", "'", '"', "`", "(", "[", "{", "```", "\n\n", "    ", "é",
    "\N{FULLWIDTH COLON}", "\ufeff",
]  # fmt: skip


def in_words(refusal):
    words = str(refusal)
    assert len(words.split()) > 3
    return words


def told(text):
    """Explain a text, and show the answer as the terminal and JSON do; or return the words of the refusal."""
    try:
        report = diagnostics.explain(text)
    except InvalidInput as refusal:
        return in_words(refusal)
    assert isinstance(report, Report)
    assert report.faults == ()
    shown = io.StringIO()
    Console(file=shown, width=100).print(report)
    json.loads(report.to_json())
    assert shown.getvalue().strip()
    return report


fuzzed = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


class TestAnyText:
    @fuzzed
    @given(st.text(max_size=300))
    def test_of_any_characters(self, text):
        told(text)

    @fuzzed
    @given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=40).map("".join))
    def test_of_pieces_of_tracebacks(self, text):
        told(text)

    @fuzzed
    @given(st.integers(0, len(TRACEBACK)), st.integers(0, len(TRACEBACK)), st.text(max_size=12))
    def test_of_a_traceback_with_a_hole(self, one, other, between):
        first, last = sorted((one, other))
        told(TRACEBACK[:first] + between + TRACEBACK[last:])


def notebook():
    error = {
        "output_type": "error",
        "ename": "IndexError",
        "evalue": "Target 10 is out of bounds.",
        "traceback": [],
    }
    cell = {"cell_type": "code", "source": [], "outputs": [error], "metadata": {}, "execution_count": 1}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


class TestOddFiles:
    """The bytes as they come from a file: each holds the same traceback."""

    @pytest.mark.parametrize(
        "raw",
        [
            TRACEBACK.encode("utf-16"),
            b"\xef\xbb\xbf" + TRACEBACK.encode(),
            TRACEBACK.encode("utf-32"),
            TRACEBACK.replace("\n", "\r\n").encode(),
            TRACEBACK.replace("ada", "a\x00da").encode(),
            ("\r".join(f"{n}%|███| {n}/100 [00:01<00:09]" for n in range(100)) + "\n" + TRACEBACK).encode(),
            "".join(f"train-0 train {line}\n" for line in TRACEBACK.splitlines()).encode(),
            "".join(f"{n:06d}   {line}\n" for n, line in enumerate(TRACEBACK.splitlines())).encode(),
            f"```\n{TRACEBACK}```\n".encode(),
            "\n".join(line.strip() for line in TRACEBACK.splitlines()).encode(),
            TRACEBACK.encode() + b"\xff\xfe\xfd",
            notebook(),
        ],
        ids=[
            "UTF-16", "BOM", "UTF-32", "Windows", "NUL", "progress bar", "kubectl", "numbered lines", "fence",
            "no indent", "broken UTF-8", "notebook",
        ],
    )  # fmt: skip
    def test_is_read(self, tmp_path, raw):
        file = tmp_path / "log.txt"
        file.write_bytes(raw)
        report = told(read_log(str(file)).text)
        assert [finding.rule for finding in report.findings] == ["labels-out-of-range"]

    @pytest.mark.parametrize("raw", [b"", b"\x00" * 1000, b"\n" * 1000, b"%PDF-1.7 \x00\x01", b"\x89PNG\r\n"])
    def test_without_a_failure_is_refused_in_words(self, tmp_path, raw):
        file = tmp_path / "log.txt"
        file.write_bytes(raw)
        try:
            text = read_log(str(file)).text
        except InvalidInput as refusal:
            in_words(refusal)
        else:
            assert isinstance(told(text), str)


LONG = {  # what could be read again and again, as long as one wishes
    "one line": lambda n: "x" * n,
    "spaces": lambda n: " " * n + "x",
    "frames": lambda n: '  File "/home/ada/train.py", line 8, in main\n' * (n // 45),
    "starts": lambda n: "Traceback (most recent call last):\n" * (n // 35),
    "openings of frames": lambda n: 'File "' * (n // 6),
    "quotes": lambda n: "\"'" * (n // 2),
    "escapes": lambda n: "\\" * n,
    "brackets": lambda n: "[(" * (n // 2),
    "digits": lambda n: "1, " * (n // 3),
    "an endless message": lambda n: TRACEBACK.replace("bounds.", "bounds" + ", 1" * (n // 3)),
    "a long state dict": lambda n: (
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
        + '"encoder.layer.weight", ' * (n // 24)
    ),
    "errors by name": lambda n: "ValueError: no\n" * (n // 15),
    "tracebacks": lambda n: TRACEBACK * (n // len(TRACEBACK)),
    "prefixes": lambda n: "".join(
        f"[rank{i % 64}]: {line}\n" for i in range(n // 400) for line in TRACEBACK.splitlines()
    ),
    "a notebook's arrows": lambda n: "<ipython-input-3-abc> in <module>\n----> 1 f()\n" * (n // 46),
    "margins": lambda n: "  | " * (n // 4),
    "boxes": lambda n: "╭─── Traceback (most recent call last) ───╮\n│ a.py:3 in f │\n" * (n // 60),
}
FEWEST_SECONDS = 0.05  # below that the clock and the caches decide
FASTEST_GROWTH = 3.0  # of time, for twice the length: 2 is linear, 4 is quadratic


def cpu_seconds(text):
    """Return the least CPU time of two runs."""
    taken = []
    for _ in range(2):
        started = time.process_time()
        told(text)
        taken.append(time.process_time() - started)
        if taken[-1] > 1:
            break
    return min(taken)


class TestTime:
    @pytest.mark.parametrize("make", LONG.values(), ids=LONG.keys())
    def test_grows_no_faster_than_the_text(self, make):
        size = 16_000
        while (once := cpu_seconds(make(size))) < FEWEST_SECONDS and size < 250_000:
            size *= 4
        if once >= FEWEST_SECONDS:
            ratios = (cpu_seconds(make(2 * size)) / cpu_seconds(make(size)) for _ in range(2))
            assert any(ratio < FASTEST_GROWTH for ratio in ratios)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("make", LONG.values(), ids=LONG.keys())
    def test_of_eight_megabytes_is_bounded(self, make):
        started = time.process_time()
        told(make(8 * 2**20))
        assert time.process_time() - started < 60
