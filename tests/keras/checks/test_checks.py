"""`compare`, `LoaderChecks` and `GradientChecks` on TensorFlow and Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import diagnostics

LOADER, GRADIENTS = diagnostics.LoaderChecks(), diagnostics.GradientChecks()
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 6)).astype("float32"), RNG.integers(0, 3, 8)


def row_means(x):
    return tf.stack([tf.add_n(tf.unstack(row)) / row.shape[0] for row in x])


def one_hot_loop(ids):
    return tf.stack([tf.cast(tf.range(5) == tf.cast(n, tf.int32), tf.float32) for n in ids])


def softmax_loop(x):
    return tf.stack([tf.exp(row) / tf.reduce_sum(tf.exp(row)) for row in x])


@pytest.mark.parametrize(
    ("fast", "slow", "inputs"),
    [
        (lambda x: tf.reduce_mean(x, 1), row_means, "rows size"),
        (tf.nn.softmax, softmax_loop, "rows size"),
        (lambda x: keras.ops.softmax(x), softmax_loop, tf.constant(X)),
        (lambda i: tf.one_hot(i, 5), one_hot_loop, "rows < 5"),
        (lambda x, y: tf.matmul(x, y, transpose_b=True),
         lambda x, y: tf.stack([tf.stack([tf.reduce_sum(a * b) for b in y]) for a in x]), ["a size", "b size"]),
    ],
)  # fmt: skip
def test_compare_is_silent(fast, slow, inputs):
    diagnostics.compare(fast, slow, inputs, framework="tensorflow").assert_same()


@pytest.mark.parametrize(
    ("fast", "slow", "said"),
    [
        (lambda x: tf.nn.softmax(x, 0), softmax_loop, "names the wrong one"),
        (lambda x: tf.reduce_sum(x, 1), row_means, "a sum in the place of a mean"),
        (lambda x: tf.reduce_mean(x, 0), row_means, "has shape (5,) from fast and (4,) from row_means"),
        (lambda x: tf.stop_gradient(tf.reduce_mean(x, 1)), row_means, "the gradient of x: none from fast"),
        (
            lambda x: tf.cast(tf.reduce_mean(x, 1), tf.float64),
            row_means,
            "is float64 from fast and float32 from row",
        ),
    ],
)
def test_compare_says_what_differs(fast, slow, said):
    assert said in str(diagnostics.compare(fast, slow, "rows size", framework="tensorflow"))


def dataset(augmented=False):
    data = tf.data.Dataset.from_tensor_slices((X, Y))
    if not augmented:
        return data
    tf.random.set_seed(None)  # under a global seed, which another test may have set, it draws the same each time
    return data.map(lambda x, y: (x + tf.random.normal([6]), y))


def shuffled():
    return dataset().shuffle(8).batch(4)


class Batches(keras.utils.PyDataset):
    def __init__(self, change=False):
        super().__init__()
        self.x, self.change = X.copy(), change

    def __len__(self):
        return 2

    def __getitem__(self, index):
        x = self.x[4 * index : 4 * index + 4]
        if self.change:
            x /= 2
        return x, Y[4 * index : 4 * index + 4]


def test_loader_checks_are_silent_about_data_of_keras_and_tensorflow():
    LOADER.no_augmentation(dataset())
    LOADER.no_augmentation(Batches())
    LOADER.same_item_twice(Batches())
    LOADER.reproducible_order(shuffled)
    rescale = keras.layers.Rescaling(1 / 127.5, offset=-1)
    images = [np.full((4, 4, 3), shade, np.uint8) for shade in (0, 100, 255)]
    LOADER.round_trip(images, rescale, lambda y: np.round((np.asarray(y) + 1) * 127.5).astype(np.uint8))


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (lambda: LOADER.no_augmentation(dataset(augmented=True)), "differs under other random numbers: [0][0]"),
        (lambda: LOADER.no_augmentation(dataset().shuffle(8)), r"item \d differs"),
        (lambda: LOADER.same_item_twice(Batches(change=True)), "diagnose rules unstable-batch"),
        (
            lambda: LOADER.reproducible_order(lambda: shuffled_by_time()),
            "differs under the same seed",
        ),
        (
            lambda: LOADER.round_trip(
                [np.full((2, 2), 100, np.uint8)], keras.layers.Rescaling(1 / 255), np.asarray
            ),
            "times the original: decode does not undo the scaling",
        ),
    ],
)
def test_loader_checks_say_what_is_wrong(check, said):
    with pytest.raises(diagnostics.CheckFailed, match=said.replace("[", r"\[")):
        check()


_clock = iter(range(1, 100))


def shuffled_by_time():
    return dataset().shuffle(8, seed=next(_clock)).batch(4)


def test_a_dataset_of_tensorflow_is_not_read_where_that_proves_nothing():
    with pytest.raises(diagnostics.InvalidInput, match=r"was given a tf.data.Dataset, which stores nothing"):
        LOADER.same_item_twice(dataset())
    with pytest.raises(diagnostics.InvalidInput, match=r"reshuffles in each iteration. Pass a function"):
        LOADER.reproducible_order(shuffled())


def model(*extra, loss="sparse_categorical_crossentropy"):
    keras.utils.set_random_seed(0)
    made = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(16, "relu"), *extra, keras.layers.Dense(3, "softmax")]
    )
    made.compile("sgd", loss)
    return made


class StopsGradient(keras.layers.Layer):
    def call(self, x):
        return keras.ops.stop_gradient(x)


class TestGradients:
    @pytest.mark.parametrize("extra", [(), (keras.layers.BatchNormalization(),), (keras.layers.Dropout(0.5),)])
    def test_every_parameter_is_silent(self, extra):
        made = model(*extra)
        before = [np.copy(v) for v in made.variables]
        assert GRADIENTS.every_parameter(made, (X, Y)).passed
        assert all((np.asarray(v) == old).all() for v, old in zip(made.variables, before, strict=True))

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda: model(StopsGradient()), "2 of 4 trainable parameters would never change"),
            (lambda: dead(), "exactly 0 in every step"),
            (lambda: model(keras.layers.Lambda(lambda x: x / 0.0)), "is NaN or infinite"),
        ],
    )
    def test_every_parameter_names_those_without(self, make, said):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            GRADIENTS.every_parameter(make(), (X, Y))
        assert said in str(raised.value)

    def test_accumulation(self):
        assert GRADIENTS.accumulation(model(keras.layers.Dropout(0.5)), (X, Y)).passed
        summed = keras.losses.SparseCategoricalCrossentropy(reduction="sum")
        with pytest.raises(diagnostics.CheckFailed, match=r"is 0.25 times that of the whole batch"):
            GRADIENTS.accumulation(model(loss=summed), (X, Y))

    def test_through_time(self):
        keras.utils.set_random_seed(0)
        pooled = keras.Sequential([keras.Input((None, 4)), keras.layers.Conv1D(8, 3, padding="same"),
                                   keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)])  # fmt: skip
        assert GRADIENTS.through_time(pooled, "2 time 4", lengths=(8, 16)).result().passed
        recurrent = keras.Sequential([keras.Input((None, 4)), keras.layers.SimpleRNN(8), keras.layers.Dense(1)])
        kernel = recurrent.layers[0].cell.recurrent_kernel
        kernel.assign(kernel * 0.3)
        with pytest.raises(diagnostics.CheckFailed, match="falls to a tenth every"):
            GRADIENTS.through_time(recurrent, "2 time 4", lengths=(8, 32))

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (
                lambda: GRADIENTS.every_parameter(keras.Sequential([keras.layers.Dense(1)]), (X, Y)),
                "is not compiled yet",
            ),
            (lambda: GRADIENTS.every_parameter(model(), (X, Y), "mse"), "a Keras model is compiled with its loss"),
            (lambda: GRADIENTS.every_parameter(model(), (X[:, :2], Y)), "computing the loss of this batch raised"),
            (
                lambda: GRADIENTS.every_parameter(model(), (X, Y, X, Y)),
                "A batch of the training data is a tuple of 4",
            ),
            (lambda: GRADIENTS.accumulation(model(), (X, Y), accumulate=print), "takes PyTorch models"),
            (lambda: GRADIENTS.through_time(model(), lambda n: tf.ones((2, n), tf.int32)), "for token ids pass"),
        ],
    )
    def test_says_what_is_wrong_with_its_arguments(self, call, said):
        with pytest.raises(diagnostics.InvalidInput, match=said):
            call()


def dead():
    made = model()
    made.layers[0].bias.assign(made.layers[0].bias - 1e3)
    return made
