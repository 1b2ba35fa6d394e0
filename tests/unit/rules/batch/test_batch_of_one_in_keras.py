"""Unit tests of `BatchOfOne` on models that are trained on single rows."""

from diagnostics.facts.layers import BatchNormSingleRow
from diagnostics.rules.batch.batch_of_one import BatchOfOne


def test_names_the_layers():
    finding = BatchOfOne().from_single_rows(BatchNormSingleRow(("batch_normalization",)))
    assert (finding.rule, finding.severity) == ("batch-of-one", "error")
