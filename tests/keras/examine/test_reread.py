"""A `PyDataset` that edits what it holds when a batch is read, and those that do not."""

import numpy as np
import pytest

import diagnostics
from tests.keras.fits import LABELS, X, indices, keras, sequential, tf

pytestmark = pytest.mark.filterwarnings("ignore")


class Batches(keras.utils.PyDataset):
    def __init__(self, seed=None):
        super().__init__()
        self.inputs, self.labels, self.random = np.tile(X, (4, 1)), np.tile(LABELS, 4), np.random.default_rng(seed)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.inputs[8 * index : 8 * index + 8], self.labels[8 * index : 8 * index + 8]


class Normalising(Batches):
    def __getitem__(self, index):
        inputs, labels = super().__getitem__(index)
        inputs -= 2.0
        return {"x": inputs}, labels


class Noisy(Batches):
    def __getitem__(self, index):
        inputs, labels = super().__getitem__(index)
        return inputs + self.random.normal(size=inputs.shape), labels


def examined(data):
    model = sequential(3)
    model.compile("adam", indices())
    return diagnostics.examine(model, data)


def test_one_that_normalises_its_own_array_is_found_and_left_as_it_is():
    data = Normalising()
    (finding,) = (one for one in examined(data).findings if one.rule == "unstable-batch")
    assert finding.severity == "warning"
    assert finding.message.startswith(
        "Reading the same batch twice with the same random seed gave two different batches: x differs in "
        "all 8 rows; a value in row 0 was -"
    )
    assert finding.message.endswith(
        " The dataset (Normalising) changes its stored data when a row is read, so each epoch trains on rows "
        "already modified by the previous epoch."
    )
    assert np.array_equal(data.inputs, np.tile(X, (4, 1)))


@pytest.mark.parametrize("make", [Batches, Noisy])
def test_one_that_draws_at_random_or_only_reads_is_clean(make):
    report = examined(make(3))
    assert "unstable-batch" not in {finding.rule for finding in report.findings} | set(report.not_applicable)


@pytest.mark.parametrize("data", [(X, LABELS), tf.data.Dataset.from_tensor_slices((X, LABELS)).batch(4)])
def test_arrays_and_tf_data_run_no_code_that_could_edit_rows(data):
    assert examined(data).not_applicable["unstable-batch"] == "needs the data read a second time"
