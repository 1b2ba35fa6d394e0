"""What is said of failures that no rule is about."""

import pytest

from diagnostics.collectors.tracebacks.nature import error_category
from diagnostics.facts.crash import CrashFacts, FrameFacts

YOURS = FrameFacts("train.py", 8, "main", "rate = config['lr']", yours=True)
THEIRS = FrameFacts("torch/nn/functional.py", 3479, "linear", None, yours=False)


def nature(name, message="", *frames):
    return error_category(CrashFacts(name, message, frames, live=False))


class TestNatureOf:
    def test_a_key_error_of_someones_own_names_the_line(self):
        assert nature("KeyError", "'lr'", YOURS) == (
            "It is a KeyError of the code's own, not a failure of training that a rule knows: a dict or table "
            "has no entry of that name, at train.py:8 in main. config has no 'lr': print its keys. If it is "
            "read from "
            "a file: that is of another revision than the code, another file than the one that is meant, or "
            "has the "
            "key one level deeper. git pull, git submodule update, and compare with a file that the project "
            "brings."
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
            "looks for it, at train.py:8 in main. 'data.csv' is looked for from the folder in which the program "
            "was started: print(os.getcwd())."
        )

    def test_a_stop_by_hand(self):
        assert nature("KeyboardInterrupt") == "Somebody stopped the program with Ctrl+C: nothing has failed."

    def test_whose_line_raised_an_unknown_error_is_named(self):
        assert nature("TeapotError", "boils", YOURS) == "It was raised at train.py:8 in main."
        assert nature("RuntimeError", "boils. Please use a kettle.", YOURS, THEIRS) == (
            "torch raised it, in linear (torch/nn/functional.py:3479), called from train.py:8 in main. "
            "The message itself says what to do: Please use a kettle."
        )
        assert nature("TeapotError", "boils") is None

    def test_syntax_in_a_package_asks_for_another_python(self):
        theirs = FrameFacts("fastprogress/fastprogress.py", 46, "", None, yours=False)
        assert nature("SyntaxError", "invalid syntax", YOURS, theirs) == (
            "Python cannot read fastprogress/fastprogress.py: that package needs a newer Python than the one that "
            "ran."
        )

    def test_python_s_own_words_need_no_frame(self):
        assert nature("TypeError", "list indices must be integers or slices, not str").startswith(
            "It is a TypeError, not a failure of training"
        )


@pytest.mark.parametrize("name", ["ValueError", "AssertionError", "RuntimeError"])
def test_a_path_where_nothing_is_is_a_failure_of_files_whoever_says_it(name):
    for message in ("The weights file at /data/model.bin does not exist", "'runs/3/best.pt' doesn't exist"):
        assert nature(name, message).startswith("It is a failure of the file system")
    assert "file system" not in (nature(name, "Template a/b does not") or "")
    assert "file system" not in (nature(name, "key 'epoch' does not exist") or "")
