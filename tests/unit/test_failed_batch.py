"""A batch that broke: how it is described, and what is said of one that is gone."""

import pytest

from diagnostics.errors import InvalidInput
from diagnostics.failed_batch import FailedBatch
from diagnostics.report.report import Report


class TestRepr:
    def test_says_which_batch_it_is(self):
        batch = FailedBatch(13, 255, 16, rows=(2, 5))
        assert repr(batch) == ("<batch of step 13: 16 examples, fingerprint 255, rows 2, 5; kept>")

    def test_says_what_is_not_known(self):
        batch = FailedBatch(13, None, 0, why_not="it was not seen")
        assert repr(batch) == "<batch of step 13: of unknown size; not kept: it was not seen>"


class TestSave:
    def test_refuses_a_batch_that_was_not_kept(self, tmp_path):
        with pytest.raises(InvalidInput) as error:
            FailedBatch(13, None, 0, why_not="it was not seen").save(tmp_path / "batch.pt")
        assert str(error.value) == "The batch of step 13 cannot be saved: it was not seen."
        assert list(tmp_path.iterdir()) == []


class TestInTheReport:
    def test_is_named_with_the_ending_of_its_files(self):
        class Archived(FailedBatch):
            ending = ".npz"

        assert "To save the batch of step 2: report.batch().save('batch.npz')." in str(
            Report("watched", failed=Archived(2, None, 4))
        )

    def test_is_not_offered_if_it_is_gone(self):
        assert "at hand" not in str(Report("watched", failed=FailedBatch(2, None, 4, why_not="gone")))

    def test_a_report_of_no_run_has_none(self):
        with pytest.raises(InvalidInput) as error:
            Report("examined").batch()
        assert str(error.value) == "batch() needs the report of a watched run, and this report is not one."
