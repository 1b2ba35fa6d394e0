"""Text vectorizers of Keras that are adapted again, as a script uses them."""

import keras
import numpy as np
import pytest

from diagnostics.collectors.preprocessing_fits import EncoderFits

OLD = np.array(["red kettle works", "red lamp", "blue kettle", "old red kettle"])
NEW = np.array(["lamp lamp lamp works", "lamp blue", "works works kettle"])


@pytest.fixture
def observed():
    fits = EncoderFits(lambda work, *given, **options: work(*given, **options), lambda: 0)
    stop = fits.listen_to_keras()
    yield fits
    stop()


def test_the_same_words_with_other_codes(observed):
    vectorizer = keras.layers.TextVectorization(output_sequence_length=4, name="words")
    for texts in (OLD, NEW):
        vectorizer.adapt(texts)
        vectorizer(texts)
    (fact,) = observed.facts()
    assert (fact.kind, fact.column) == ("TextVectorization", "words")
    assert 0 < fact.moved < fact.shared
    assert fact.where.line > fact.first.line - 1


@pytest.mark.parametrize("mode", ["int", "multi_hot"])
def test_finds_nothing_if_the_first_fit_is_unused_or_counts_words(observed, mode):
    vectorizer = keras.layers.TextVectorization(10, output_mode=mode, pad_to_max_tokens=mode != "int")
    vectorizer.adapt(OLD)
    if mode == "multi_hot":
        vectorizer(OLD)
    vectorizer.adapt(NEW)
    vectorizer(NEW)
    assert list(observed.facts()) == []
