"""What is said of failures that no rule is about."""

import pytest

from diagnostics.api.explain import explain
from diagnostics.collectors.tracebacks.nature import nature_of
from diagnostics.facts.crash import CrashFacts, FrameFacts

YOURS = FrameFacts("train.py", 8, "main", "rate = config['lr']", yours=True)
THEIRS = FrameFacts("torch/nn/functional.py", 3479, "linear", None, yours=False)


def nature(name, message="", *frames):
    return nature_of(CrashFacts(name, message, frames, live=False))


class TestNatureOf:
    def test_a_key_error_of_someones_own_names_the_line(self):
        assert nature("KeyError", "'lr'", YOURS) == (
            "It is a KeyError of the code's own, not a failure of training that a rule knows: a dict or table "
            "has no "
            "entry of that name, at train.py:8 in main."
        )

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (
                "ConnectionError",
                "HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded with url: /",
            ),
            ("OSError", "We couldn't connect to 'https://huggingface.co' to load this file"),
            ("LocalEntryNotFoundError", "outgoing traffic has been disabled"),
            ("gaierror", "[Errno -3] Temporary failure in name resolution"),
        ],
    )
    def test_a_network_failure(self, name, message):
        assert nature(name, message, YOURS).startswith("It is a failure of the network or of a server's answer")

    def test_a_missing_file_names_the_line(self):
        assert nature("FileNotFoundError", "[Errno 2] No such file or directory: 'data.csv'", YOURS) == (
            "It is a failure of the file system, not of the training: a file or folder is not where the code "
            "looks for "
            "it, at train.py:8 in main."
        )

    def test_a_full_disk(self):
        assert nature("OSError", "[Errno 28] No space left on device", YOURS).startswith(
            "The disk or the quota is full"
        )

    def test_a_stop_by_hand(self):
        assert nature("KeyboardInterrupt") == "Somebody stopped the program with Ctrl+C: nothing has failed."

    @pytest.mark.parametrize("name", ["RuntimeError", "ValueError", "TypeError", "InvalidArgumentError"])
    def test_a_librarys_judgement_of_tensors_may_be_of_training(self, name):
        assert nature(name, "something about sizes", YOURS, THEIRS) is None
        assert nature(name, "something about sizes") is None

    def test_is_part_of_the_report(self):
        text = (
            'Traceback (most recent call last):\n  File "train.py", line 8, in main\n    a["b"]\nKeyError: \'b\'\n'
        )
        report = explain(text)
        assert report.findings == ()
        assert report.crash.nature.endswith("at train.py:8 in main.")
