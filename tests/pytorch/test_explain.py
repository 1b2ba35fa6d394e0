"""`explain`: an exception or its text, whichever way it came about."""

import re
import traceback

import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

import diagnostics
from diagnostics import InvalidInput
from tests.support.crashes import failure


def out_of_range():
    F.cross_entropy(torch.zeros(3, 2), torch.tensor([0, 2, 1]))


NAMED = (
    "The labels range from 0 to 2, so there are at least 3 classes, but the model has 2 outputs. 1 of the "
    "3 labels in this batch is out of range (label 2)."
)
NAMED_FROM_TEXT = (
    "Label 2 is beyond the model's last class. Classes are counted from 0, so every label must be smaller than "
    "the number of outputs. The number of outputs and the examples with that label cannot be read from the "
    "traceback text: pass the exception to diagnostics.explain."
)


class TestLiveException:
    def test_is_named_with_the_numbers_from_its_frames_and_the_users_own_line(self):
        report = diagnostics.explain(failure(out_of_range))
        (finding,) = report.findings
        assert (finding.rule, finding.message) == ("labels-out-of-range", NAMED)
        assert finding.where.function == "out_of_range"
        assert finding.where.file.endswith("test_explain.py")
        assert report.title == "explained an exception"
        assert not report.ok
        assert report.stages == ()

    def test_that_another_was_raised_from(self):
        def wrap():
            try:
                out_of_range()
            except IndexError as error:
                raise RuntimeError("step 17 failed") from error

        report = diagnostics.explain(failure(wrap))
        assert [finding.message for finding in report.findings] == [NAMED]
        assert report.crash.exception == "IndexError"
        assert report.findings[0].where.function == "out_of_range"

    def test_during_whose_handling_another_was_raised(self):
        def clean_up():
            try:
                out_of_range()
            except IndexError:
                {}["checkpoint"]

        assert [f.message for f in diagnostics.explain(failure(clean_up)).findings] == [NAMED]

    def test_in_a_group_of_others(self):
        def gather():
            found = failure(out_of_range)
            raise ExceptionGroup("jobs", [KeyError("lr"), ExceptionGroup("some", [found, ValueError("seed")])])

        report = diagnostics.explain(failure(gather))
        assert [finding.message for finding in report.findings] == [NAMED]
        assert (report.crash.exception, report.findings[0].where.function) == ("IndexError", "out_of_range")

    def test_that_was_hidden_stays_hidden(self):
        def hide():
            try:
                out_of_range()
            except IndexError:
                raise RuntimeError("no details") from None

        report = diagnostics.explain(failure(hide))
        assert report.findings == ()
        assert report.crash.message == "no details"

    def test_whose_chain_is_a_circle(self):
        one, other = ValueError("one"), ValueError("other")
        one.__cause__, other.__cause__ = other, one
        assert diagnostics.explain(one).crash.message == "one"

    def test_without_a_traceback(self):
        report = diagnostics.explain(IndexError("Target 2 is out of bounds."))
        assert [finding.rule for finding in report.findings] == ["labels-out-of-range"]
        assert report.findings[0].where is None

    def test_from_the_worker_of_a_data_loader_names_the_line_in_the_dataset(self):
        class Rows(Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return {}["pixels"]

        report = diagnostics.explain(failure(lambda: next(iter(DataLoader(Rows(), num_workers=2)))))
        assert report.findings == ()
        assert (report.crash.exception, report.crash.message) == ("KeyError", "'pixels'")
        assert report.crash.where.function == "__getitem__"

    def test_that_no_rule_knows_keeps_its_words_and_its_line(self):
        def pick():
            "season".encode("summer")

        report = diagnostics.explain(failure(pick))
        assert report.findings == ()
        assert not report.ok
        lines = str(report).splitlines()
        assert lines[1] == "  LookupError: unknown encoding: summer"
        assert 'in pick: "season".encode("summer")' in lines[3]
        assert re.fullmatch(
            r"No rule recognises this failure\. It was raised at tests/pytorch/test_explain\.py:\d+ in pick\.",
            lines[-1],
        )

    def test_leaves_the_exception_as_it_is(self):
        error = failure(out_of_range)
        trace = error.__traceback__
        diagnostics.explain(error)
        assert error.__traceback__ is trace
        assert error.__cause__ is None

    def test_does_not_keep_the_tensors_of_the_frames_alive(self):
        import gc
        import weakref

        class Payload(torch.Tensor):
            pass

        references = []

        def run():
            big = torch.zeros(3).as_subclass(Payload)
            references.append(weakref.ref(big))
            out_of_range()

        report = diagnostics.explain(failure(run))
        gc.collect()
        assert references[0]() is None
        assert len(report.findings) == 1

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_an_interrupt_is_an_exception_like_another(self, kind):
        assert diagnostics.explain(kind()).crash.exception == kind.__name__


class TestText:
    def test_says_what_it_leaves_open(self):
        text = "".join(traceback.format_exception(failure(out_of_range)))
        report = diagnostics.explain(text)
        (finding,) = report.findings
        assert (finding.rule, finding.message) == ("labels-out-of-range", NAMED_FROM_TEXT)
        assert finding.where.function == "out_of_range"
        assert report.title == "explained the text of a traceback"

    def test_of_several_failures_the_last(self):
        first = "".join(traceback.format_exception(failure(out_of_range)))
        then = "".join(traceback.format_exception(failure(lambda: int("three"))))
        report = diagnostics.explain(f"{first}\nagain:\n{then}")
        assert report.findings == ()
        assert (report.crash.exception, report.title) == (
            "ValueError",
            "explained the failure on line 12, one of 2 in the text",
        )

    def test_of_several_failures_the_last_where_none_is_recognised(self):
        texts = ["".join(traceback.format_exception(failure(lambda t=t: int(t)))) for t in ("three", "four")]
        assert diagnostics.explain("\n".join(texts)).crash.message.endswith("'four'")

    def test_of_a_chain_names_the_cause_and_the_line_of_the_user(self):
        def wrap():
            try:
                out_of_range()
            except IndexError as error:
                raise RuntimeError("step 17 failed") from error

        report = diagnostics.explain("".join(traceback.format_exception(failure(wrap))))
        assert [finding.rule for finding in report.findings] == ["labels-out-of-range"]
        assert report.findings[0].where.function == "out_of_range"


class TestArguments:
    @pytest.mark.parametrize(
        ("given", "named"),
        [
            (None, "None"),
            (3, "an int"),
            ({}, "a dict"),
            (ValueError, "the class ValueError, not an instance of it"),
        ],
    )
    def test_neither_an_exception_nor_a_text(self, given, named):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.explain(given)
        assert str(raised.value) == (
            f"explain() was given {named}. It takes a caught exception, or the text of a traceback."
        )

    @pytest.mark.parametrize(
        ("text", "given"),
        [
            ("", "explain() was given an empty text"),
            ("  \n", "explain() was given an empty text"),
            ("epoch 1\nepoch 2", "No rule knows this text. explain() was given 2 lines without a traceback"),
            ("epoch 1", "No rule knows this text. explain() was given 1 line without a traceback"),
        ],
    )
    def test_a_text_without_a_traceback(self, text, given):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.explain(text)
        assert str(raised.value) == (
            f"{given}. It takes a whole traceback, from 'Traceback (most recent call last):' to the line with the "
            "exception."
        )

    def test_a_fault_of_a_rule_is_a_line_in_the_report(self, monkeypatch):
        from diagnostics.rules.model.loss.labels_out_of_range import LabelsOutOfRange

        def fail(self, *_):
            raise ZeroDivisionError("a fault of ours")

        monkeypatch.setattr(LabelsOutOfRange, "_compare", fail)
        report = diagnostics.explain(failure(out_of_range))
        assert report.faults == ("the rule labels-out-of-range failed: ZeroDivisionError: a fault of ours",)
        assert report.findings == ()
