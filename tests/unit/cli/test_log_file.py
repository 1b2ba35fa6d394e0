"""What is pasted into a file, or comes down a pipe."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading

import pytest

from diagnostics import InvalidInput
from diagnostics.cli import log_file
from diagnostics.cli.log_file import read_log

TRACEBACK = """\
epoch 3, naïve run  0%|█████
Traceback (most recent call last):
  File "/home/ada/nli/train.py", line 31, in <module>
    trainer.train()
IndexError: Target 2 is out of bounds.
"""


def refused(file):
    with pytest.raises(InvalidInput) as raised:
        read_log(str(file))
    return str(raised.value)


class TestEncodings:
    @pytest.mark.parametrize(
        "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"]
    )
    def test_of_unicode_are_told_by_their_first_bytes(self, tmp_path, encoding):
        file = tmp_path / "log.txt"
        mark = "\ufeff" if encoding.endswith("32-le") else ""
        file.write_bytes((mark + TRACEBACK).encode(encoding))
        log = read_log(str(file))
        assert (log.text, log.note) == (TRACEBACK, None)

    def test_of_windows_is_taken_where_it_is_not_unicode(self, tmp_path):
        file = tmp_path / "log.txt"
        text = "Größe überschritten: müßig, völlig falsch, für Ä und Ö\n"
        file.write_bytes(text.encode("cp1252"))
        assert read_log(str(file)).text == text

    def test_a_broken_byte_among_good_ones_is_only_a_mark(self, tmp_path):
        file = tmp_path / "log.txt"
        file.write_bytes(TRACEBACK.encode().replace("ï".encode(), b"\xff"))
        assert read_log(str(file)).text == TRACEBACK.replace("ï", "\ufffd")

    def test_zeros_that_a_crash_left_in_a_log_are_no_hindrance(self, tmp_path):
        file = tmp_path / "log.txt"
        file.write_bytes(b"\0" * 5000 + TRACEBACK.encode())
        assert read_log(str(file)).text.endswith(TRACEBACK)


class TestOtherFiles:
    def test_a_directory(self, tmp_path):
        assert refused(tmp_path) == f"{tmp_path} is a directory; pass the file with the traceback."

    def test_one_that_is_not_there(self):
        assert refused("no-such-log.txt") == "no-such-log.txt cannot be read: No such file or directory."

    def test_a_name_that_no_file_can_have(self):
        assert refused("log\0.txt") == "log\0.txt cannot be read: embedded null byte."

    def test_one_that_is_compressed(self, tmp_path):
        file = tmp_path / "log.gz"
        file.write_bytes(gzip.compress(TRACEBACK.encode()))
        assert refused(file) == f"{file} is compressed. Try: gunzip -c {file} | diagnose explain -"

    def test_a_notebook_gives_the_tracebacks_of_its_cells(self, tmp_path):
        cell = {"ename": "IndexError", "evalue": "", "traceback": TRACEBACK.splitlines(), "output_type": "error"}
        printed = {"output_type": "stream", "name": "stdout", "text": ["epoch 1"]}
        cells = [{"cell_type": "markdown", "source": []}, {"cell_type": "code", "outputs": [printed, cell]}]
        file = tmp_path / "train.ipynb"
        file.write_text(json.dumps({"cells": cells, "nbformat": 4}))
        assert read_log(str(file)).text == TRACEBACK.rstrip("\n")

    @pytest.mark.parametrize("text", ["[]", "{}", '{"cells": 3}', "not JSON"])
    def test_what_is_only_called_a_notebook_is_read_as_it_is(self, tmp_path, text):
        file = tmp_path / "train.ipynb"
        file.write_text(text)
        assert read_log(str(file)).text == text


class TestSize:
    def test_of_a_huge_file_only_the_end_is_read_and_that_is_said(self, tmp_path, monkeypatch):
        monkeypatch.setattr(log_file, "MOST_BYTES", 2**20)
        monkeypatch.setattr(log_file, "_CHUNK", 2**16)
        file = tmp_path / "log.txt"
        line = "step 17: loss 0.69\n"
        file.write_text(line * (5 * 2**20 // len(line)) + TRACEBACK)
        log = read_log(str(file))
        assert log.text.startswith(line)
        assert log.text.endswith(TRACEBACK)
        assert 2**20 - 2 * len(line) < len(log.text.encode()) <= 2**20
        assert log.note == (
            f"{file} has 5 MB; only the last 1 MB were read. If the failure is before that, pass that part alone."
        )

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
    def test_characters_of_several_bytes_are_not_cut_apart(self, tmp_path, monkeypatch, encoding):
        monkeypatch.setattr(log_file, "MOST_BYTES", 2**16)
        file = tmp_path / "log.txt"
        file.write_bytes(("step\n" * 2**15 + TRACEBACK).encode(encoding))
        assert read_log(str(file)).text.endswith("step\n" + TRACEBACK)


class TestStandardInput:
    def test_is_read_as_a_file_is(self, monkeypatch):
        raw = io.TextIOWrapper(io.BytesIO(TRACEBACK.encode("utf-16")))
        monkeypatch.setattr(sys, "stdin", raw)
        assert read_log("-").text == TRACEBACK

    def test_of_a_program_that_gives_it_as_text(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO(TRACEBACK))
        assert read_log("-").text == TRACEBACK

    @pytest.mark.skipif(sys.platform == "win32", reason="pipes have no names there")
    def test_a_named_pipe_is_read_to_its_end(self, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=lambda: pipe.write_text(TRACEBACK))
        writer.start()
        assert read_log(str(pipe)).text == TRACEBACK
        writer.join()


class TestCommand:
    """`diagnose explain`, as a person calls it."""

    def run(self, *arguments, given=""):
        command = [sys.executable, "-m", "diagnostics", "explain", *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=120)

    def test_says_on_standard_error_that_it_read_only_the_end(self, tmp_path):
        file = tmp_path / "log.txt"
        line = "step 17: loss 0.69\n"
        file.write_text(line * (9 * 2**20 // len(line)) + TRACEBACK)
        done = self.run(str(file), "--format", "json")
        assert done.stderr == (
            f"diagnose: {file} has 9 MB; only the last 8 MB were read. If the failure is before that, pass "
            "that part alone.\n"
        )
        assert json.loads(done.stdout)["findings"][0]["rule"] == "labels-out-of-range"

    def test_of_nothing_ends_with_2_and_plain_words(self):
        done = self.run("-")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("diagnose: explain() was given an empty text. It takes a whole traceback")
