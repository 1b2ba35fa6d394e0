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

    @pytest.mark.parametrize("name", ["IndexError", "OverflowError", "RuntimeError", "builtins.OSError"])
    def test_words_that_tell_nothing_leave_what_the_name_means(self, name):
        short = name.removeprefix("builtins.")
        told = nature(name, "boils", YOURS)
        assert told.startswith(f"No rule knows its words. {short} says no more than that ")
        assert told.endswith(", at train.py:8 in main.")

    def test_a_name_of_somebody_s_own_means_nothing(self):
        assert nature("TeapotError", "boils", YOURS) is None

    @pytest.mark.parametrize("name", ["RuntimeError", "ValueError", "TypeError", "InvalidArgumentError"])
    def test_a_librarys_judgement_of_tensors_may_be_of_training(self, name):
        assert nature(name, "something about sizes", YOURS, THEIRS) == (
            "By its words the message is about shapes; it proves no cause. torch raised it, in linear "
            "(torch/nn/functional.py:3479), called from train.py:8 in main. To begin with, print x.shape of what "
            "the line uses, just before it."
        )
        assert nature(name, "something about sizes").startswith("By its words the message is about shapes;")
        assert not (nature(name, "something unheard of") or "").startswith("By its words")

    @pytest.mark.parametrize(
        ("message", "topic"),
        [
            ("failed to allocate a workspace", "memory"),
            ("rank 3 left the barrier", "processes that work together"),
            ("this kernel has no implementation on the GPU", "the device or its libraries"),
            ("dtype of mask is wrong", "types of numbers"),
            ("position 7 is out of range", "an index"),
            ("backward was skipped", "gradients"),
            ("the score became NaN", "values that are not finite"),
            ("checkpoint has another layout", "a checkpoint or saved file"),
            ("needs a newer version", "versions of packages"),
            ("no images under data", "data that is missing or empty"),
            ("this is not yet supported", "something that is not supported"),
            ("beta must be positive", "an argument or setting"),
        ],
    )
    def test_the_words_of_an_unknown_message_tell_its_topic(self, message, topic):
        told = nature("RuntimeError", message, YOURS)
        assert told.startswith(f"By its words the message is about {topic}; it proves no cause. It was raised at")

    def test_a_check_of_a_library_s_own_names_it_and_the_call(self):
        refused = FrameFacts(
            "trl/trainer/sft_config.py", 9, "__post_init__", 'raise ValueError("no")', yours=False
        )
        assert nature("ValueError", "packing needs a length", YOURS, refused) == (
            "trl refuses what it is given, by a check of its own, in __post_init__ (trl/trainer/sft_config.py:9); "
            "its message says why, and no rule knows more. The call comes from train.py:8 in main: change what is "
            "passed there."
        )

    def test_a_check_without_a_message_says_so(self):
        refused = FrameFacts("peft/tuners/lora.py", 263, "mark_only", "raise NotImplementedError", yours=False)
        assert nature("NotImplementedError", "", YOURS, refused) == (
            "peft refuses what it is given, by a check of its own, in mark_only (peft/tuners/lora.py:263); it "
            "gives no message. The call comes from train.py:8 in main: change what is passed there."
        )

    def test_syntax_in_a_package_asks_for_another_python(self):
        theirs = FrameFacts("fastprogress/fastprogress.py", 46, "", None, yours=False)
        assert nature("SyntaxError", "invalid syntax", YOURS, theirs) == (
            "Python cannot read fastprogress/fastprogress.py: that package needs a newer Python than the one that "
            "ran."
        )

    def test_python_s_own_words_need_no_frame(self):
        assert nature("TypeError", "list indices must be integers or slices, not str").startswith(
            "It is Python's own TypeError, not a failure of training"
        )


@pytest.mark.parametrize("name", ["ValueError", "AssertionError", "RuntimeError"])
def test_a_path_where_nothing_is_is_a_failure_of_files_whoever_says_it(name):
    for message in ("The weights file at /data/model.bin does not exist", "'runs/3/best.pt' doesn't exist"):
        assert nature(name, message).startswith("It is a failure of the file system")
    assert "file system" not in (nature(name, "Template a/b does not") or "")
    assert "file system" not in (nature(name, "key 'epoch' does not exist") or "")
