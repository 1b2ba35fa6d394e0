"""Unit tests of `BatchOfOne` on models that are trained on single rows."""

from diagnostics.facts.layers import BatchNormSingleRow
from diagnostics.rules.batch.batch_of_one import BatchOfOne


def test_names_the_layers():
    finding = BatchOfOne().from_single_rows(BatchNormSingleRow(("batch_normalization",)))
    assert (finding.rule, finding.severity) == ("batch-of-one", "error")
    assert finding.message == (
        "Each batch has one row, and in training mode batch_normalization subtracts from a row its own mean: what "
        "is left is 0, and the model gives every row the same prediction. It learns nothing from its inputs, and "
        "the statistics for evaluation are those of an untrained model."
    )
    assert finding.fix == "batch_size=32 in fit(), or .batch(32) of the dataset"
