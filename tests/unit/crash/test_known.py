"""Rows of the table that hold the cause and the fix of their message."""

import re

import pytest

from diagnostics.api.explain import explain
from diagnostics.collectors.crash.messages.table import all_messages
from diagnostics.facts.crash import KnownFailure
from diagnostics.rules.registry import rules_of_crashes

ROWS = [row for row in all_messages() if row.cause]
TAKING = {
    rule.name
    for rule in rules_of_crashes()
    if any(need.kind is KnownFailure for needs in rule.checks().values() for need in needs.values())
}


def test_each_row_has_a_fix_and_a_rule_that_reports_it():
    assert [row.pattern for row in ROWS if not row.fix or row.rule not in TAKING] == []


def test_each_row_can_be_filled_with_what_its_examples_hold():
    for row in ROWS:
        for example in row.examples:
            held = {name: value or "" for name, value in row.compiled.search(example).groupdict().items()}
            held |= dict.fromkeys(re.findall(r"\(\?<(\w+)>", row.beside), "")
            texts = [row.cause.format_map(held), *(fix.format_map(held) for fix in row.fix)]
            assert all(text.strip() for text in texts)
            assert texts[0].endswith((".", "}", ")")) or held, row.pattern


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ("RuntimeError: DataLoader worker (pid 42) is killed by signal: Aborted.", "signal", "Aborted"),
        ("RuntimeError: no kernel image is available for execution on the device", "no kernels", None),
        ("ValueError: Unknown layer: 'Attention2'.", "custom class", "Attention2"),
    ],
)
def test_evidence_names_the_kind_and_the_value_of_the_message(text, kind, what):
    (finding,) = explain(text).findings
    assert (finding.evidence["kind"], finding.evidence.get("what")) == (kind, what)


class TestOverriddenMethods:
    MESSAGE = "TypeError: Trainer.training_step() takes 3 positional arguments but 4 were given\n"
    START = 'Traceback (most recent call last):\n  File "train.py", line 8, in main\n    run()\n'
    THEIRS = '  File "/opt/lib/python3.11/site-packages/transformers/trainer.py", line 9, in train\n    step()\n'

    def test_a_library_that_calls_them_otherwise_is_of_another_version(self):
        (finding,) = explain(self.START + self.THEIRS + self.MESSAGE).findings
        assert finding.rule == "installation-mismatch"

    def test_code_that_calls_its_own_method_wrongly_is_none_of_ours(self):
        report = explain(self.START + self.MESSAGE)
        assert report.findings == ()
        assert "a function got arguments that it does not take" in report.crash.nature


class TestWhatTheLineTells:
    ERROR = "ValueError: Shapes (3, 3, 64, 64) and (3, 3, 64, 32) are incompatible\n"
    START = 'Traceback (most recent call last):\n  File "train.py", line 8, in main\n    {}\n'

    @pytest.mark.parametrize(
        ("line", "rule"),
        [("model.load_weights('w.h5')", "shape-mismatch"), ("model.fit(images, masks)", "broadcast-loss")],
    )
    def test_keras_says_the_same_of_weights_and_of_targets(self, line, rule):
        (finding,) = explain(self.START.format(line) + self.ERROR).findings
        assert finding.rule == rule
        assert ("checkpoint" in finding.message) == (rule == "shape-mismatch")

    @pytest.mark.parametrize("name", ["Trainer", "LightningModule"])
    def test_an_attribute_that_a_version_of_lightning_lacks(self, name):
        error = f"AttributeError: '{name}' object has no attribute 'testing'\n"
        found = [finding.rule for finding in explain(self.START.format("trainer.fit(m)") + error).findings]
        assert found == ["installation-mismatch"]


def test_a_page_may_lose_the_backticks_of_a_message():
    said = "ValueError: `model` must be a `LightningModule` or `torch._dynamo.OptimizedModule`, got `Net`"
    quoted, bare = ([finding.rule for finding in explain(text).findings] for text in (said, said.replace("`", "")))
    assert quoted == bare != []


def test_a_data_set_that_cannot_be_read_is_told_by_what_reading_raised():
    report = explain(
        "Traceback (most recent call last):\n"
        '  File "/home/ada/rows.py", line 3, in read\n    row["text"]\n'
        "KeyError: 'text'\n\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/lib/python3.11/site-packages/datasets/builder.py", line 9, in prepare\n'
        "    raise DatasetGenerationError() from e\n"
        "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset\n"
    )
    assert report.findings == ()
    assert report.crash.exception == "KeyError"
    assert "at /home/ada/rows.py:3 in read. row has no 'text'" in report.crash.nature


def test_torchrun_s_summary_without_its_traceback_is_its_tail():
    summary = "[1]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 69)\n  error_file: <N/A>\n"
    (finding,) = explain(summary).findings
    assert finding.rule == "launcher-failure"


def test_an_import_that_fails_by_numpy_is_told_by_what_was_printed_before():
    printed = (
        "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000\n"
    )
    frame = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 1, in <module>\n    import x\n'
    (finding,) = explain(f"{printed}{frame}ImportError: initialization failed\n").findings
    assert finding.rule == "installation-mismatch"


def test_a_crash_without_a_traceback_is_a_compiled_library_s():
    text = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n"
    (finding,) = explain(f'{text}  File "/home/ada/train.py", line 3 in f\n').findings
    assert finding.rule == "installation-mismatch"
    assert finding.message.startswith("A compiled library crashed, so Python printed no traceback.")


def test_a_function_of_ones_own_that_lacks_an_argument_is_no_keras():
    start = 'Traceback (most recent call last):\n  File "train.py", line 8, in main\n    load_data(size=29)\n'
    report = explain(f"{start}TypeError: load_data() got an unexpected keyword argument 'size'\n")
    assert report.findings == ()


class TestPaddingOrText:
    PADDING = (
        "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with "
        "'padding=True' 'truncation=True' to have batched tensors with the same length. Perhaps your features "
        "(`{}` in this case) have excessive nesting (inputs type `list` where type `int` is expected).\n"
    )
    FRAME = 'Traceback (most recent call last):\n  File "/home/ada/a.py", line 3, in f\n    make(x)\n'

    def test_alone_leaves_both_open(self):
        (finding,) = explain(self.FRAME + self.PADDING.format("ids")).findings
        assert finding.rule == "ragged-batch"
        assert finding.message.startswith("The lists of ids could not be made into one tensor. Either they differ")

    def test_after_lists_of_two_lengths_is_missing_padding(self):
        first = f"{self.FRAME}ValueError: expected sequence of length 6 at dim 1 (got 7)\n\n"
        chained = "The above exception was the direct cause of the following exception:\n\n"
        (finding,) = explain(first + chained + self.FRAME + self.PADDING.format("labels")).findings
        assert finding.message.startswith("One example has 6 values in 'labels' and another 7, so they cannot")
        assert not any("remove" in fix for fix in (finding.fix, *finding.alternatives))

    def test_after_strings_is_a_column_of_strings(self):
        first = f"{self.FRAME}ValueError: too many dimensions 'str'\n\n"
        chained = "The above exception was the direct cause of the following exception:\n\n"
        (finding,) = explain(first + chained + self.FRAME + self.PADDING.format("text")).findings
        assert finding.rule == "untokenized-dataset"


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("I am getting list index out of range error during training", "IndexError"),
        ("what is 'Foo' object has no attribute 'bar', please?", "AttributeError"),
        ("name 'loader' is not defined but it is", "NameError"),
    ],
)
def test_python_s_own_words_name_their_exception(text, exception):
    report = explain(text)
    assert report.findings == ()
    assert report.crash.exception == exception


def test_of_two_quoted_errors_the_known_one_is_explained():
    known = "RuntimeError: unscale_() has already been called on this optimizer since the last update()."
    text = f"{known}\n\nKeyError: 'x'"
    assert [finding.rule for finding in explain(text).findings] == ["mixed-precision-misuse"]


def test_torchrun_s_log_line_is_its_tail():
    (finding,) = explain(
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0"
    ).findings
    assert finding.rule == "launcher-failure"


def test_numbers_that_the_message_does_not_name_leave_no_empty_brackets():
    (finding,) = explain("ValueError: All arrays must be of the same length").findings
    assert finding.message == "A column has a different number of values than the table has rows."
