"""Failures of NumPy, raised for real: the exception, and its traceback's text, give the rule of their row."""

import traceback

import numpy as np
import pytest

from diagnostics.api.explain import explain


def column_changed_in_place():
    predictions = np.zeros((3, 1))
    predictions += np.zeros((3, 5))


def mean_taken_from_bytes():
    image = np.zeros(3, dtype="uint8")
    image -= np.ones(3)


FAILURES = {
    "in place": (column_changed_in_place, "shape-mismatch"),
    "bytes": (mean_taken_from_bytes, "dtype-mismatch"),
    "dot": (lambda: np.dot(np.zeros((10, 5)), np.zeros((4, 3))), "shape-mismatch"),
    "matmul": (lambda: np.zeros((10, 5)) @ np.zeros((4, 3)), "shape-mismatch"),
    "choice of none": (lambda: np.random.default_rng(0).choice([]), "emptied-dataset"),
    "probabilities": (lambda: np.random.default_rng(0).choice(2, p=[0.3, 0.3]), "refused-call"),
    "objects": (lambda: np.isnan(np.array(["a"], dtype=object)), "dtype-mismatch"),
    "float indices": (lambda: np.zeros(3)[np.zeros(2)], "dtype-mismatch"),
    "size for dtype": (lambda: np.zeros(3, 4), "refused-call"),
    "histogram": (lambda: np.histogram(np.array([np.nan, 1.0])), "non-finite-loss"),
}


@pytest.mark.parametrize(("fail", "rule"), FAILURES.values(), ids=FAILURES)
def test_exception_and_text_give_the_same_rule(fail, rule):
    with pytest.raises((ValueError, TypeError, IndexError)) as raised:
        fail()
    text = "".join(traceback.format_exception(raised.value))
    assert [[finding.rule for finding in explain(of).findings] for of in (raised.value, text)] == [[rule], [rule]]
