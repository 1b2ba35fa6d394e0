"""One bug in a PyTorch and in a Keras program: `examine` gives the same rule, and nearly the same sentence."""

import os

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

import diagnostics  # noqa: E402
from tests.keras.pairs import assert_alike, bare  # noqa: E402
from tests.support.findings import all_findings  # noqa: E402
from tests.support.marks import quick  # noqa: E402

if keras.backend.backend() != "tensorflow":
    pytest.skip("needs Keras on TensorFlow", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")
layers = keras.layers
ROWS, FEATURES, HIDDEN, CLASSES, BATCH = 256, 8, 32, 3, 32
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, FEATURES)).astype("float32")
Y = X[:, :CLASSES].argmax(1)
PRICES = X @ RNG.normal(size=(FEATURES, 1)).astype("float32")
BINARY = (X[:, :1] > 0).astype("float32")


# --- the two frameworks: the same program twice -----------------------------------------------------------


def mlp_in_torch(outputs=CLASSES, features=FEATURES, between=None, after=()):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(features, HIDDEN), *(between or [nn.ReLU()]), nn.Linear(HIDDEN, outputs), *after
    )


def mlp_in_keras(outputs=CLASSES, features=FEATURES, between=None, after=()):
    keras.utils.set_random_seed(0)
    between = between or [layers.Activation("relu")]
    return keras.Sequential(
        [layers.Input((features,)), layers.Dense(HIDDEN), *between, layers.Dense(outputs), *after]
    )


def batches_in_torch(x, y, shuffle=True):
    return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=BATCH, shuffle=shuffle)


def batches_in_keras(x, y, shuffle=True):
    return (x, y) if shuffle else tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)  # fit shuffles arrays


def examine_in_torch(model=None, x=X, y=Y, loss=None, optimizer=None, shuffle=True, evaluation=None):
    model = model or mlp_in_torch()
    optimizer = (optimizer or torch.optim.Adam)(model.parameters())
    data, held_out = batches_in_torch(x, y, shuffle), evaluation and batches_in_torch(*evaluation)
    return diagnostics.examine(model, data, loss or nn.CrossEntropyLoss(), optimizer, evaluation=held_out)


def examine_in_keras(
    model=None, x=X, y=Y, loss=None, optimizer=None, shuffle=True, evaluation=None, jit_compile="auto"
):
    model = model or mlp_in_keras()
    loss = loss or keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile((optimizer or keras.optimizers.Adam)(), loss, jit_compile=jit_compile)
    return diagnostics.examine(model, batches_in_keras(x, y, shuffle), evaluation=evaluation)


def found(report, rule):
    assert report.faults == (), report.faults
    findings = {finding.rule: finding for finding in all_findings(report)}
    assert rule in findings, f"{rule} was not found:\n{report}"
    return findings[rule]


# --- data: the same arrays for both -----------------------------------------------------------------------


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


ORDER = np.argsort(Y, kind="stable")
WIDE = RNG.normal(size=(BATCH, 16)).astype("float32")  # a row of few features may well occur twice
DATA = {
    "unscaled-inputs": {"x": RNG.integers(0, 256, X.shape).astype("float32")},
    "constant-inputs": {"x": changed(X, np.s_[:, 2], 7)},
    "sorted-by-label": {"x": X[ORDER], "y": Y[ORDER], "shuffle": False},
    "single-class-labels": {"y": Y * 0},
    "leaked-evaluation-rows": {"evaluation": (X[:64], Y[:64])},
    "repeated-batch": {"x": np.tile(WIDE, (8, 1)), "y": np.tile(Y[:BATCH], 8)},
}


@pytest.mark.parametrize("rule", quick(DATA, "constant-inputs", "sorted-by-label"))
def test_data(rule):
    features = DATA[rule].get("x", X).shape[1]
    in_torch = examine_in_torch(mlp_in_torch(features=features), **DATA[rule])
    in_keras = examine_in_keras(mlp_in_keras(features=features), **DATA[rule])
    assert_alike(found(in_torch, rule), found(in_keras, rule), reading=bare)


def test_targets_on_another_scale():
    dollars = {"y": 1e5 * PRICES + 3e5}
    in_torch = examine_in_torch(mlp_in_torch(1), loss=nn.MSELoss(), **dollars)
    in_keras = examine_in_keras(mlp_in_keras(1), loss="mse", **dollars)
    assert_alike(found(in_torch, "unscaled-inputs"), found(in_keras, "unscaled-inputs"), reading=bare)


def test_a_class_that_dominates_is_but_a_note_in_keras_where_fit_may_be_given_class_weights():
    rare = {"y": (X[:, 0] > 1.75).astype("int64")}
    in_torch = found(examine_in_torch(mlp_in_torch(2), **rare), "class-imbalance")
    in_keras = found(examine_in_keras(mlp_in_keras(2), **rare), "class-imbalance")
    assert (in_torch.severity, in_keras.severity) == ("warning", "note")
    assert in_torch.message == in_keras.message


class TestOneBadExample:
    """Unshuffled, so that both look at the same batch: it is named by its number in both."""

    def test_among_the_inputs(self):
        gap = {"x": changed(X, (3, 2), np.nan), "shuffle": False}
        in_torch = examine_in_torch(mlp_in_torch(between=[nn.Tanh()]), **gap)
        in_keras = examine_in_keras(mlp_in_keras(between=[layers.Activation("tanh")]), **gap)
        one, other = found(in_torch, "non-finite-inputs"), found(in_keras, "non-finite-inputs")
        assert_alike(one, other)
        assert "(row 3, counted from 0)" in one.message
        assert_alike(found(in_torch, "non-finite-loss"), found(in_keras, "non-finite-loss"))

    def test_whose_own_loss_is_not_finite(self):
        negative = {"y": changed(BINARY, 3, -2), "shuffle": False}
        in_torch = examine_in_torch(
            mlp_in_torch(1), loss=lambda prediction, y: ((1 + y).log() - prediction).square().mean(), **negative
        )
        in_keras = examine_in_keras(
            mlp_in_keras(1), loss=lambda y, prediction: (keras.ops.log(1 + y) - prediction) ** 2, **negative
        )
        one, other = found(in_torch, "non-finite-loss"), found(in_keras, "non-finite-loss")
        assert_alike(one, other)
        assert "Example 3 (counted from 0) produces this loss on its own." in one.message
        assert one.evidence["examples"] == other.evidence["examples"] == [3]

    def test_that_a_relu_fused_into_its_layer_drops_is_found_by_its_gradient(self):
        fused = keras.Sequential([layers.Input((FEATURES,)), layers.Dense(HIDDEN, "relu"), layers.Dense(CLASSES)])
        report = examine_in_keras(fused, x=changed(X, (3, 2), np.nan), shuffle=False)
        assert "row 3" in found(report, "non-finite-inputs").message


# --- models: the same layers in both ----------------------------------------------------------------------


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


class Detached(nn.Module):
    def forward(self, x):
        return x.detach()


class Stopped(layers.Layer):
    def call(self, x):
        return keras.ops.stop_gradient(x)


class Squared(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.ops.mean((y_true - y_pred) ** 2)


def scaled_in_torch(first=1.0, last=1.0, **layout):
    model = mlp_in_torch(**layout)
    with torch.no_grad():
        model[0].weight *= first
        model[2].weight *= last
    return model


def scaled_in_keras(first=1.0, last=1.0, **layout):
    model = mlp_in_keras(**layout)
    for layer, factor in ((model.layers[0], first), (model.layers[2], last)):
        layer.kernel.assign(layer.kernel * factor)
    return model


def filled_in_torch():
    model = mlp_in_torch()
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    return model


def filled_in_keras():
    model = mlp_in_keras()
    for variable in model.variables:
        variable.assign(keras.ops.full_like(variable, 0.1))
    return model


def biased_in_torch():
    model = mlp_in_torch()
    nn.init.constant_(model[0].bias, -20)
    return model


def biased_in_keras():
    model = mlp_in_keras()
    model.layers[0].bias.assign(keras.ops.full((HIDDEN,), -20))
    return model


# By rule, or by all rules that the program breaks: how it is examined, and how much of the words agrees.
MODELS = {
    ("labels-out-of-range",): (
        lambda: examine_in_torch(mlp_in_torch(2)),
        lambda: examine_in_keras(mlp_in_keras(2)),
        1,
    ),
    ("unused-classes",): (
        lambda: examine_in_torch(mlp_in_torch(100)),
        lambda: examine_in_keras(mlp_in_keras(100)),
        1,
    ),
    ("probabilities-as-logits",): (  # one right before the loss is undone by Keras
        lambda: examine_in_torch(mlp_in_torch(after=[nn.Softmax(-1), nn.Identity()])),
        lambda: examine_in_keras(mlp_in_keras(after=[layers.Softmax(), layers.Reshape((CLASSES,))])),
        1,
    ),
    ("logits-as-probabilities",): (  # PyTorch's loss refuses them, Keras' cuts them off: another sentence follows
        lambda: examine_in_torch(mlp_in_torch(1), y=BINARY, loss=nn.BCELoss()),
        lambda: examine_in_keras(mlp_in_keras(1), y=BINARY, loss="binary_crossentropy"),
        0.6,
    ),
    ("broadcast-loss",): (
        lambda: examine_in_torch(mlp_in_torch(1), y=PRICES[:, 0], loss=nn.MSELoss()),
        lambda: examine_in_keras(mlp_in_keras(1), y=PRICES[:, 0], loss=Squared()),
        1,
    ),
    ("initial-loss-off",): (
        lambda: examine_in_torch(scaled_in_torch(last=100)),
        lambda: examine_in_keras(scaled_in_keras(last=100)),
        1,
    ),
    ("dead-units", "ignores-input"): (
        lambda: examine_in_torch(biased_in_torch()),
        lambda: examine_in_keras(biased_in_keras()),
        1,
    ),
    ("saturated-activations",): (
        lambda: examine_in_torch(scaled_in_torch(first=1000, between=[nn.Tanh()])),
        lambda: examine_in_keras(scaled_in_keras(first=1000, between=[layers.Activation("tanh")])),
        1,
    ),
    ("symmetric-initialization",): (
        lambda: examine_in_torch(filled_in_torch()),
        lambda: examine_in_keras(filled_in_keras()),
        1,
    ),
    ("no-gradient",): (
        lambda: examine_in_torch(mlp_in_torch(after=[Detached()])),
        lambda: examine_in_keras(mlp_in_keras(after=[Stopped()])),
        1,
    ),
    ("unreached-parameters",): (
        lambda: examine_in_torch(mlp_in_torch(between=[nn.ReLU(), Detached()])),
        lambda: examine_in_keras(mlp_in_keras(between=[layers.ReLU(), Stopped()])),
        1,
    ),
}


SOME_MODELS = ("labels-out-of-range",), ("no-gradient",), ("unreached-parameters",)


@pytest.mark.parametrize("rules", quick(MODELS, *SOME_MODELS), ids=" ".join)
def test_model(rules):
    in_torch, in_keras, at_least = MODELS[rules]
    one, other = in_torch(), in_keras()
    for rule in rules:
        assert_alike(found(one, rule), found(other, rule), at_least, bare)


@pytest.mark.exhaustive
def test_under_xla_a_label_out_of_range_is_told_in_the_same_words():
    in_keras = examine_in_keras(mlp_in_keras(2), jit_compile=True)
    assert_alike(
        found(examine_in_torch(mlp_in_torch(2)), "labels-out-of-range"),
        found(in_keras, "labels-out-of-range"),
        reading=bare,
    )
    assert "carry label 2" in found(in_keras, "non-finite-loss").message


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(20, 8), nn.Linear(8, CLASSES)

    def forward(self, input_ids, attention_mask):
        return self.head(self.embedding(input_ids)).movedim(-1, 1)


def test_padding_that_counts_in_the_loss():
    lengths = RNG.integers(3, 8, size=(64, 1))
    mask = (np.arange(8) < lengths).astype("int64")
    tokens = {"input_ids": mask * RNG.integers(1, 20, size=mask.shape), "attention_mask": mask}
    tags = tokens["input_ids"] % CLASSES

    model = Tagger()
    columns = {**tokens, "labels": tags}
    rows = [{name: values[row] for name, values in columns.items()} for row in range(len(tags))]
    in_torch = diagnostics.examine(model, DataLoader(rows, batch_size=BATCH), nn.CrossEntropyLoss())

    inputs = {name: layers.Input((8,), name=name, dtype="int64") for name in tokens}
    states = layers.Embedding(20, 8)(inputs["input_ids"])
    in_keras = examine_in_keras(keras.Model(inputs, layers.Dense(CLASSES)(states)), tokens, tags)
    assert_alike(found(in_torch, "padding-in-loss"), found(in_keras, "padding-in-loss"), reading=bare)


# --- optimizers: the same kind, on the same model ---------------------------------------------------------


class TestLearningRate:
    def test_too_high_by_default(self):
        """A line learned by SGD diverges, from wherever it starts, above a rate of about 0.5.

        A factor before the loss counts twice: 0.001, PyTorch's default, is 2.5 here, and Keras' 0.01 is 25.
        """
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(FEATURES, 1), Times(50))
        in_torch = examine_in_torch(model, y=PRICES, loss=nn.MSELoss(), optimizer=torch.optim.SGD)
        keras.utils.set_random_seed(0)
        model = keras.Sequential([layers.Input((FEATURES,)), layers.Dense(1), layers.Rescaling(50)])
        in_keras = examine_in_keras(model, y=PRICES, loss="mse", optimizer=keras.optimizers.SGD)
        high = "learning-rate-too-high"
        assert_alike(found(in_torch, high), found(in_keras, high), reading=bare)
        default = "default-learning-rate"  # in Keras an optimizer can be named by a string, and the name is said
        assert_alike(found(in_torch, default), found(in_keras, default), 0.9, reading=bare)

    def test_too_low(self):
        """It starts at the chance level and stays there: small scores, and as many rows of each class."""
        even = np.stack([np.flatnonzero(label == Y)[:64] for label in range(CLASSES)], axis=1).ravel()
        rows = {"x": X[even], "y": Y[even], "shuffle": False}
        in_torch = examine_in_torch(
            scaled_in_torch(last=0.01), optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-8), **rows
        )
        in_keras = examine_in_keras(
            scaled_in_keras(last=0.01), optimizer=lambda: keras.optimizers.Adam(1e-8), **rows
        )
        for rule in ("learning-rate-too-low", "loss-plateau"):
            assert_alike(found(in_torch, rule), found(in_keras, rule), reading=bare)
