"""`baselines` on the data of Keras."""

import numpy as np
import pytest

import diagnostics
from tests.keras.programs import Batches, X, Y, shuffled, tf


@pytest.mark.parametrize(
    "data",
    [(X, Y), (tf.constant(X), tf.constant(Y)), shuffled(), Batches(), (X, np.eye(3)[Y])],
    ids=["arrays", "tensors", "tf.data", "PyDataset", "one-hot"],
)  # fmt: skip
def test_a_linear_relation_is_what_the_model_must_beat(data):
    result = diagnostics.baselines(data)
    assert (result.facts.task, result.facts.classes) == ("classification", 3)
    assert result.best.name == "linear"
    assert result.must_beat > 0.75, str(result)


def test_sample_weights_are_no_target():
    data = tf.data.Dataset.from_tensor_slices((X, Y, np.ones(len(Y)))).batch(16)
    assert diagnostics.baselines(data).facts.classes == 3


def test_strings_are_counted():
    texts = tf.constant([f"{'good' if n % 2 else 'bad'} film {n}" for n in range(100)])
    data = tf.data.Dataset.from_tensor_slices((texts, [n % 2 for n in range(100)])).batch(10)
    result = diagnostics.baselines(data)
    assert result.must_beat == 1.0
    assert "words" in result.best.detail


def test_the_order_of_a_shuffled_dataset_stays_as_it_is():
    def batches(scored):
        tf.random.set_seed(3)
        data = tf.data.Dataset.range(64).map(lambda n: (tf.cast([n], tf.float32), n % 2)).shuffle(64).batch(8)
        if scored:
            diagnostics.baselines(data)
        return [y.numpy().tolist() for _ in range(2) for _, y in data]

    assert batches(False) == batches(True)


def test_a_generator_is_refused_in_words():
    data = tf.data.Dataset.from_generator(lambda: iter([(X, Y)]), output_types=(tf.float32, tf.int64))
    with pytest.raises(diagnostics.InvalidInput, match="draws from a Python generator"):
        diagnostics.baselines(data)
