"""The second look at Keras models: what it says, and that nothing of the script's changes."""

import numpy as np
import pytest

from diagnostics.facts.dependence import DependenceFacts
from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import keras, layers, tf

pytestmark = pytest.mark.filterwarnings("ignore")
RANDOM = np.random.default_rng(0)
X, OTHER = (RANDOM.normal(size=(64, 5)).astype("float32") for _ in range(2))
LABELS = np.arange(64) % 3
TOKENS = RANDOM.integers(1, 20, size=(32, 13))


def classifier(*middle):
    model = keras.Sequential([keras.Input((5,)), layers.Dense(8, "relu"), *middle])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def looked_at(model, *data, train=None):
    looking = ScriptObserver(looks_again=True)
    try:
        if train is None:
            model.fit(*data, batch_size=32, verbose=0)
        else:
            train(model)
    finally:
        looking.close()
    before = [w.copy() for w in model.get_weights()], np.random.get_state()[1].copy()
    stage = looking.look_again(60)
    assert looking.faults == []
    assert all(map(np.array_equal, before[0], model.get_weights()))
    assert np.array_equal(before[1], np.random.get_state()[1])
    (training,) = looking.trainings
    return stage, {finding.rule: finding for finding in training.examined.findings}


def test_softmax_over_the_batch_is_named():
    stage, found = looked_at(classifier(layers.Dense(3), layers.Softmax(axis=0)), X, LABELS)
    assert stage.status == "passed"
    assert found["examples-mixed"].severity == "error"
    assert "The predictions sum to 1 over the batch" in found["examples-mixed"].message
    assert found["examples-mixed"].fix == "keras.ops.softmax(x, axis=-1)  # over the classes of each example"


def test_reshape_that_mixes_examples_is_named():
    inputs = keras.Input((4, 6))
    turned = layers.Lambda(lambda x: keras.ops.reshape(x, (4, -1, 6)))(inputs)
    summed = layers.Lambda(lambda x: keras.ops.mean(x, axis=0))(turned)
    model = keras.Model(inputs, layers.Dense(3, "softmax")(summed))
    model.compile("adam", "sparse_categorical_crossentropy")
    _, found = looked_at(model, RANDOM.normal(size=(64, 4, 6)), LABELS)
    assert found["examples-mixed"].severity == "error"
    assert "turns shape (64, 4, 6) into (4, 64, 6)" in found["examples-mixed"].message or (
        "turns shape (32, 4, 6) into (4, 32, 6)" in found["examples-mixed"].message
    )


def score(y_true, y_pred):
    both = keras.ops.sum(y_true * y_pred)
    return (2 * both + 1) / (keras.ops.sum(y_true) + keras.ops.sum(y_pred) + 1)


def opposite(y_true, y_pred):
    return 1 - score(y_true, y_pred)


MASKS = (RANDOM.random((64, 6, 6, 1)) < 0.3).astype("float32")


def segments(loss):
    model = keras.Sequential([keras.Input((6, 6, 1)), layers.Conv2D(4, 3, padding="same", activation="relu")])
    model.add(layers.Conv2D(1, 1, activation="sigmoid"))
    model.compile(keras.optimizers.Adam(0.05), loss)
    return model


def test_a_score_that_is_minimised_is_named():
    _, found = looked_at(segments(score), MASKS + 0.1, MASKS)
    assert found["inverted-loss"].severity == "warning"
    assert found["inverted-loss"].message.startswith("The loss score is higher for correct predictions")


@pytest.mark.parametrize("loss", [opposite, "mse", lambda y, p: keras.ops.mean(keras.ops.abs(y - p))])
def test_a_loss_that_falls_towards_the_targets_is_not_named(loss):
    _, found = looked_at(segments(loss), MASKS + 0.1, MASKS)
    assert "inverted-loss" not in found


def test_layers_without_an_activation_are_named():
    keras.utils.set_random_seed(1)  # with some weights, the model is not found to be linear
    model = keras.Sequential([keras.Input((5,)), layers.Dense(16), layers.Dense(8), layers.Dense(3, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    _, found = looked_at(model, X, LABELS)
    assert found["missing-activation"].severity == "note"
    assert (
        "although it has 3 layers. There is no activation function between" in found["missing-activation"].message
    )


def test_one_layer_behind_a_relu_is_not_named():
    _, found = looked_at(classifier(layers.Dense(3, "softmax")), X, LABELS)
    assert "missing-activation" not in found


@pytest.mark.parametrize(
    "middle",
    [
        (layers.BatchNormalization(), layers.Dense(3, "softmax")),
        (layers.Dropout(0.5), layers.Dense(3, "softmax")),
        (layers.GaussianNoise(0.1), layers.Dense(3, "softmax")),
    ],
)
def test_healthy_layers_are_not_named(middle):
    stage, found = looked_at(classifier(*middle), X, LABELS)
    assert stage.status == "passed"
    assert "examples-mixed" not in found


def language_model(causal=True, after=()):
    inputs = keras.Input((12,), dtype="int32")
    hidden = layers.Embedding(20, 8)(inputs) + layers.Embedding(12, 8)(np.arange(12))
    hidden = layers.MultiHeadAttention(2, 4)(hidden, hidden, use_causal_mask=causal)
    model = keras.Model(inputs, layers.Dense(20)(hidden))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@pytest.mark.parametrize("causal", [True, False])
def test_language_model_without_a_causal_mask_is_named(causal):
    stage, found = looked_at(language_model(causal), TOKENS[:, :-1], TOKENS[:, 1:])
    assert stage.status == "passed"
    assert ("future-leak" in found) is not causal


def recurrent(bidirectional):
    lstm = layers.LSTM(8, return_sequences=True)
    middle = layers.Bidirectional(lstm) if bidirectional else lstm
    model = keras.Sequential([keras.Input((12,)), layers.Embedding(20, 8), middle, layers.Dense(20, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


@pytest.mark.parametrize("bidirectional", [True, False])
def test_recurrent_language_model_that_reads_backwards_is_named(bidirectional):
    _, found = looked_at(recurrent(bidirectional), TOKENS[:, :-1], TOKENS[:, 1:])
    assert ("future-leak" in found) is bidirectional


def two_towers(names, own_loss=False):
    first, second = keras.Input((5,), name="question"), keras.Input((5,), name="answer")
    towers = {"question": first, "answer": second}
    left, right = (layers.Dense(4, "relu")(towers[name]) for name in names)
    joined = layers.Concatenate()([left, right])
    if own_loss:
        joined = layers.ActivityRegularization(l2=1e-3)(joined)
    model = keras.Model([first, second], layers.Dense(1, "sigmoid")(joined))
    model.compile("adam", "binary_crossentropy")
    return model


def test_input_that_is_never_used_is_named():
    _, found = looked_at(two_towers(["question", "question"]), [X, OTHER], LABELS % 2)
    assert found["unused-input"].severity == "warning"
    assert "No prediction depends on the model's input 'answer'" in found["unused-input"].message


def test_inputs_that_are_used_or_that_a_loss_may_use_are_not():
    _, found = looked_at(two_towers(["question", "answer"]), [X, OTHER], LABELS % 2)
    assert "unused-input" not in found
    _, found = looked_at(two_towers(["question", "question"], own_loss=True), [X, OTHER], LABELS % 2)
    assert "unused-input" not in found


class Own(keras.Model):
    def __init__(self, head):
        super().__init__()
        self.hidden, self.head = layers.Dense(8, activation="relu"), head

    def call(self, inputs):
        return self.head(self.hidden(inputs))


class Counting(Own):
    calls = []

    def call(self, inputs):
        Counting.calls.append(1)
        return self.head(self.hidden(inputs))


@pytest.mark.parametrize(("by", "built"), [("fit", False), ("train_on_batch", False), ("train_on_batch", True)])
def test_subclassed_model(by, built):
    model = Own(keras.Sequential([layers.Dense(3), layers.Softmax(axis=0)]))
    model.compile("adam", "sparse_categorical_crossentropy")
    if built:
        model.build((None, 5))
    batches = None if by == "fit" else lambda m: [m.train_on_batch(X[:32], LABELS[:32]) for _ in range(5)]
    stage, found = looked_at(model, X, LABELS, train=batches)
    assert stage.status == "passed"
    assert found["examples-mixed"].severity == "error"


def test_code_that_could_be_noticed_is_not_run():
    model = Counting(layers.Dense(3, "softmax"))
    model.compile("adam", "sparse_categorical_crossentropy")
    looking = ScriptObserver(looks_again=True)
    try:
        model.fit(X, LABELS, batch_size=16, verbose=0)
    finally:
        looking.close()
    calls = len(Counting.calls)
    stage = looking.look_again(60)
    assert len(Counting.calls) == calls
    assert stage.status == "not judged"
    assert "running it could be noticed" in stage.detail


def test_facts_name_what_could_not_be_measured():
    from diagnostics.collectors.keras.dependence.measure import measure
    from diagnostics.collectors.keras.dependence.subject import KerasSubject, keep_batch

    model = classifier(layers.Dense(3, "softmax"))
    few = measure(KerasSubject(model, keep_batch(X[:3], LABELS[:3], None)))
    assert few.why_not["examples"] == "needs a batch of at least 4 examples"
    late = measure(KerasSubject(model, keep_batch(X, LABELS, None), deadline=0.0))
    assert late == DependenceFacts(
        why_not=dict.fromkeys(["examples", "inputs", "steps", "linear"], "there was no time left for this check")
        | {"padding": "needs exactly one input with padding"}
        | {"future": "the targets are not the next tokens of one of the inputs"}
        | {"packing": "the targets are not the tokens of one of the inputs"}
        | {"copy": "the targets are not the tokens of one of the inputs"}
        | {"statistics": "the model has no batch norm with running statistics"}
    )


class OwnWeight(layers.Layer):
    def build(self, shape):
        self.w = tf.Variable(tf.random.normal((shape[-1], 8), seed=1))

    def call(self, inputs):
        return inputs @ self.w


def test_untracked_variables_are_looked_for_before_the_time_is_over(monkeypatch):
    def measure(subject):
        subject._deadline = 0.0
        return DependenceFacts()

    monkeypatch.setattr("diagnostics.collectors.keras.dependence.measure.measure", measure)
    _, found = looked_at(classifier(OwnWeight(), layers.Dense(3, "softmax")), X, LABELS)
    assert list(found["optimizer-misses-parameters"].evidence["untracked"]) == ["own_weight/w"]
