"""What padding does to the predictions of small Keras models."""

import numpy as np
import pytest

from diagnostics.collectors.keras.dependence.measure import measure
from diagnostics.collectors.keras.dependence.subject import KerasSubject, keep_batch
from diagnostics.collectors.keras.examine.pipeline import KerasPipeline
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.pipeline import LossFacts
from diagnostics.rules.model.padding_attended import PaddingAttended
from tests.keras.fits import keras, layers

WIDTH = 60
RANDOM = np.random.default_rng(0)
TEXTS = [RANDOM.integers(1, 50, RANDOM.integers(4, 10)).tolist() for _ in range(24)]
PADDED = keras.utils.pad_sequences(TEXTS, WIDTH, padding="post")
LABELS = np.arange(24) % 2


class Subclassed(keras.Model):
    def __init__(self, reader, mask):
        super().__init__()
        self.embed, self.reader = layers.Embedding(50, 8, mask_zero=mask), reader
        self.out = layers.Dense(1, "sigmoid")

    def call(self, tokens):
        return self.out(self.reader(self.embed(tokens)))


def sequential(reader, mask):
    return keras.Sequential([layers.Embedding(50, 8, mask_zero=mask), reader, layers.Dense(1, "sigmoid")])


def functional(reader, mask):
    tokens = keras.Input((WIDTH,), dtype="int32")
    hidden = reader(layers.Embedding(50, 8, mask_zero=mask)(tokens))
    return keras.Model(tokens, layers.Dense(1, "sigmoid")(hidden))


def measured(make, reader, mask=False, ids=PADDED) -> DependenceFacts:
    keras.utils.set_random_seed(0)
    model = make(reader, mask)
    model.compile("adam", "binary_crossentropy")
    model.train_on_batch(ids, LABELS)
    before = [np.asarray(variable) for variable in (*model.variables, *model.optimizer.variables)]
    facts = measure(KerasSubject(model, keep_batch(ids, LABELS, None)))
    after = (*model.variables, *model.optimizer.variables)
    assert all((np.asarray(now) == then).all() for now, then in zip(after, before, strict=True))
    return facts


def is_reported(facts):
    return PaddingAttended().from_answers(DependenceFacts(padding=facts.padding, trained=True)) is not None


@pytest.mark.parametrize("make", [sequential, functional, Subclassed])
def test_the_last_state_after_the_padding_has_forgotten_the_words(make):
    facts = measured(make, layers.LSTM(8))
    assert (facts.padding.input, facts.padding.rows, facts.padding.blank) == ("0", 6, 0)
    assert facts.padding.removed.moved == (make is functional)
    assert is_reported(facts)


@pytest.mark.parametrize("make", [sequential, functional, Subclassed])
def test_a_masked_one_has_not(make):
    facts = measured(make, layers.LSTM(8), mask=True)
    # float32: rows that share a call with others are summed in another order.
    assert facts.padding.with_padding == pytest.approx(facts.padding.without, rel=1e-4)
    assert facts.padding.removed.changed == 0
    assert not is_reported(facts)


@pytest.mark.parametrize(
    "reader",
    [layers.GlobalMaxPooling1D, layers.GlobalAveragePooling1D, lambda: layers.Bidirectional(layers.GRU(8))],
)
def test_layers_that_keep_the_words_are_not_reported(reader):
    assert not is_reported(measured(sequential, reader()))


def test_a_flat_model_needs_one_length():
    facts = measured(functional, layers.Flatten())
    assert facts.padding.removed.moved
    assert not is_reported(facts)


def test_padding_in_front_is_not_checked():
    facts = measured(sequential, layers.LSTM(8), ids=keras.utils.pad_sequences(TEXTS, WIDTH))
    assert facts.why_not["padding"] == "needs exactly one input with padding"


@pytest.mark.parametrize("mask", [False, True])
def test_the_loss_of_a_masked_output_leaves_it_out(mask):
    model = keras.Sequential([layers.Embedding(50, 8, mask_zero=mask), layers.Dense(4, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    pipeline = KerasPipeline(model, (PADDED, np.where(PADDED, 1 + PADDED % 3, 0)))
    facts = [*pipeline.dataset(), *pipeline.batch(), *pipeline.forward()]
    assert [fact.masked for fact in facts if isinstance(fact, LossFacts)] == [mask]
