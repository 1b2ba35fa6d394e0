"""Encoders that are fitted again, as a script uses them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import LabelEncoder, OrdinalEncoder

from diagnostics.collectors.preprocessing_fits import EncoderFits

ALL, SOME = [f"user {n:02d}" for n in range(20)], [f"user {n:02d}" for n in range(5, 18)]


def column(values, name="user"):
    return pd.Series(values, name=name)


@pytest.fixture
def observed():
    """Return the fits, with the number of trainings that have begun in `begun`."""
    fits = EncoderFits(lambda work, *given, **options: work(*given, **options), lambda: fits.begun)
    fits.begun = 0
    stop = fits.listen()
    yield fits
    stop()


def found(fits):
    return [(fact.column, fact.values, fact.shared, fact.moved) for fact in fits.facts()]


def test_the_same_values_with_other_codes(observed):
    encoder = LabelEncoder().fit(column(ALL))
    encoder.transform(column(ALL))
    encoder.fit_transform(column(SOME))
    del encoder
    assert found(observed) == [("user", (20, 13), 13, 13)]
    (fact,) = observed.facts()
    assert (fact.kind, fact.where.file) == ("LabelEncoder", fact.first.file)


def test_columns_of_a_table(observed):
    encoder = OrdinalEncoder()
    encoder.fit_transform(pd.DataFrame({"user": ALL, "day": ["mon", "tue"] * 10}))
    encoder.fit_transform(pd.DataFrame({"user": SOME, "day": ["tue"] * 12 + ["mon"]}))
    assert found(observed) == [("user", (20, 13), 13, 13)]


def test_refits_after_the_training(observed):
    encoder = LabelEncoder()
    encoder.fit_transform(column(ALL))
    observed.begun = 1
    encoder.fit_transform(column(SOME))
    assert len(found(observed)) == 1


def test_folds_train_a_model_after_each_fit(observed):
    encoder = LabelEncoder()
    for values in (ALL, SOME):
        encoder.fit_transform(column(values))
        observed.begun += 1
    assert found(observed) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda encoder: (encoder.fit_transform(column(ALL)), encoder.fit_transform(column(ALL[::-1]))),
        lambda encoder: (encoder.fit_transform(column(ALL)), encoder.fit_transform(column(SOME, "friend"))),
        lambda encoder: (encoder.fit_transform(np.array(ALL)), encoder.fit_transform(np.array(SOME))),
        lambda encoder: (encoder.fit(column(SOME)), encoder.fit_transform(column(ALL))),
        lambda encoder: (encoder.fit_transform(column(SOME)), LabelEncoder().fit_transform(column(ALL))),
        lambda encoder: [encoder.fit_transform(column(ALL[n:])) for n in range(6)],
    ],
    ids=["same codes", "another column", "no name", "first fit unused", "another encoder", "groups"],
)
def test_finds_nothing_elsewhere(observed, use):
    use(LabelEncoder())
    assert found(observed) == []
