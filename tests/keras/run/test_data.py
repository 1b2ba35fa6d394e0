"""`fit` reads its data as often and in the same order when it is observed, whatever the data is made of."""

import random
import warnings

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import CLASSES, FEATURES, ROWS, X, Y, from_logits, keras, layers, tf
from tests.support.marks import exhaustive, quick

BATCH = 16
SIGNATURE = (tf.TensorSpec((FEATURES,), tf.float32), tf.TensorSpec((), tf.int64))
BATCHES = (tf.TensorSpec((None, FEATURES), tf.float32), tf.TensorSpec((None,), tf.int64))


def batched(rows, labels=Y):
    return X[rows : rows + BATCH], labels[rows : rows + BATCH]


class Reads:
    """What happened while data was read, in order."""

    def __init__(self):
        self.events = []

    def rows(self, labels=Y):
        self.events.append("begin")
        try:
            for row in range(ROWS):
                self.events.append(row)
                yield X[row], labels[row]
        finally:
            self.events.append("end")


def counting(reads, labels=Y):
    return tf.data.Dataset.from_generator(lambda: reads.rows(labels), output_signature=SIGNATURE).batch(BATCH)


def prefetched(reads, labels=Y):
    return counting(reads, labels).prefetch(4)


def one_shot(reads, labels=Y):
    stream = reads.rows(labels)
    return tf.data.Dataset.from_generator(lambda: stream, output_signature=SIGNATURE).batch(BATCH)


def with_own_numpy_generator(reads, labels=Y):
    generator = np.random.default_rng(3)

    def rows():
        for start in generator.permutation(ROWS)[:96]:
            reads.events.append(start)
            yield X[start] + generator.normal(size=FEATURES).astype("float32"), labels[start]

    return tf.data.Dataset.from_generator(rows, output_signature=SIGNATURE).batch(BATCH).prefetch(2)


def with_global_generators(reads, labels=Y):
    def rows():
        for _ in range(96):
            row = np.random.randint(ROWS)
            reads.events.append((row, random.random()))
            yield X[row], labels[row]

    return tf.data.Dataset.from_generator(rows, output_signature=SIGNATURE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def in_a_numpy_function(reads, labels=Y):
    def read(row):
        reads.events.append(int(row))
        return X[row], labels[row]

    rows = tf.data.Dataset.range(ROWS).map(lambda row: tf.numpy_function(read, [row], (tf.float32, tf.int64)))
    return rows.map(lambda x, y: (tf.ensure_shape(x, (FEATURES,)), tf.ensure_shape(y, ()))).batch(BATCH)


def interleaved(reads, labels=Y):
    def shard(_number):
        return tf.data.Dataset.from_generator(lambda: reads.rows(labels), output_signature=SIGNATURE).take(48)

    return tf.data.Dataset.range(2).interleave(shard, cycle_length=2, block_length=8).batch(BATCH)


def shuffled_with_a_seed(_reads, labels=Y):
    return tf.data.Dataset.from_tensor_slices((X, labels)).shuffle(ROWS, seed=5).batch(BATCH)


def counted_in_a_variable(reads, labels=Y):
    reads.variable = tf.Variable(0, dtype=tf.int64)

    def count(x, y):
        reads.variable.assign_add(1)
        return x + tf.cast(reads.variable, tf.float32) / 100, y

    return tf.data.Dataset.from_tensor_slices((X, labels)).map(count).batch(BATCH)


def with_random_operations(_reads, labels=Y):
    def noisy(x, y):
        return x + tf.random.normal((FEATURES,)), y

    return tf.data.Dataset.from_tensor_slices((X, labels)).map(noisy).batch(BATCH)


def from_memory(_reads, labels=Y):
    return tf.data.Dataset.from_tensor_slices((X, labels)).map(lambda x, y: (2 * x, y)).batch(BATCH).prefetch(2)


def cached(reads, labels=Y):
    return counting(reads, labels).cache()


class Counted(keras.utils.PyDataset):
    def __init__(self, reads, labels):
        super().__init__()
        self.reads, self.labels = reads, labels

    def __len__(self):
        return ROWS // BATCH

    def __getitem__(self, index):
        self.reads.events.append(index)
        return batched(index * BATCH, self.labels)


def py_dataset(reads, labels=Y):
    return Counted(reads, labels)


def python_generator(reads, labels=Y):
    for start in range(0, ROWS, BATCH):
        reads.events.append(start)
        yield batched(start, labels)


def hugging_face(_reads, labels=Y):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"x": X, "label": labels}).with_format("numpy")
    return rows.to_tf_dataset(columns="x", label_cols="label", batch_size=BATCH, shuffle=True)


KINDS = [
    counting, prefetched, one_shot, with_own_numpy_generator, with_global_generators, in_a_numpy_function,
    interleaved, shuffled_with_a_seed, counted_in_a_variable, with_random_operations, from_memory, cached,
    py_dataset, python_generator, hugging_face,
]  # fmt: skip


class Noted(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))


def built():
    model = keras.Sequential([layers.Input((FEATURES,)), layers.Dense(16, "relu"), layers.Dropout(0.2)])
    model.add(layers.Dense(CLASSES))
    return model


def unbuilt():
    return keras.Sequential([layers.Dense(16, "relu"), layers.Dropout(0.2), layers.Dense(CLASSES)])


def fit(kind, labels=Y, model=built, epochs=1, validation=None):
    """Return all that a script could notice of a fit."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    reads, noted, network = Reads(), Noted(), model()
    network.compile(keras.optimizers.Adam(1e-2), from_logits())
    given = {} if validation is None else {"validation_data": validation(reads)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data that runs out
        history = network.fit(kind(reads, labels), epochs=epochs, verbose=0, callbacks=[noted], **given).history
    variable = getattr(reads, "variable", None)
    return {
        "losses": noted.losses,
        "history": history,
        "weights": [value.tobytes() for value in network.get_weights()],
        "reads": reads.events,
        "counter": None if variable is None else int(variable),
        "random": (random.random(), np.random.rand(), float(tf.random.uniform(()))),
    }


@pytest.fixture
def run():
    run = ScriptObserver()
    try:
        yield run
    finally:
        run.close()
        assert run.faults == []


def found(run):
    run.close()
    return [finding.rule for report in run.examined for finding in report.findings]


def looked_at(*arguments, **options):
    run = ScriptObserver()
    try:
        return fit(*arguments, **options), run
    finally:
        run.close()
        assert run.faults == []


@pytest.mark.slow
class TestReadsNothingBeside:
    @pytest.mark.parametrize(
        "kind", quick(KINDS, one_shot, from_memory, py_dataset), ids=lambda kind: kind.__name__
    )
    def test_same_steps_losses_and_reads(self, kind):
        plain = fit(kind)
        watched, run = looked_at(kind)
        assert watched == plain
        assert found(run) == []
        (examined,) = run.examined
        stages = {stage.name: stage.status for stage in examined.stages}
        assert stages["one-batch overfit"] == "passed", examined

    @pytest.mark.parametrize("kind", exhaustive(counting, py_dataset, shuffled_with_a_seed))
    def test_same_over_several_epochs(self, kind):
        assert looked_at(kind, epochs=3)[0] == fit(kind, epochs=3)

    @pytest.mark.parametrize("kind", exhaustive(counting, one_shot, py_dataset))
    def test_validation_data_is_read_by_fit_alone(self, kind):
        plain = fit(from_memory, validation=kind)
        watched, run = looked_at(from_memory, validation=kind)
        assert watched == plain
        assert found(run) == []

    @pytest.mark.parametrize("kind", quick([with_global_generators, one_shot], one_shot))
    def test_same_for_a_model_that_is_built_by_its_first_step(self, kind):
        plain = fit(kind, model=unbuilt)
        watched, run = looked_at(kind, model=unbuilt)
        assert watched == plain
        assert found(run) == []

    def test_hands_generators_back_when_python_does(self):
        """A generator's `finally` runs before the next epoch's generator begins."""
        noticed, _ = looked_at(counting, epochs=2)
        edges = [event for event in noticed["reads"] if not isinstance(event, int)]
        assert edges == ["begin", "end", "begin", "end"]


@pytest.mark.slow
class TestStillNames:
    @pytest.mark.parametrize(
        "kind",
        [
            one_shot,
            *exhaustive(with_global_generators, interleaved, shuffled_with_a_seed),
            py_dataset,
            *exhaustive(hugging_face),
        ],
    )
    def test_labels_out_of_range(self, kind, run):
        with pytest.raises(tf.errors.InvalidArgumentError, match="label value"):
            fit(kind, labels=Y + 1)
        assert found(run) == ["labels-out-of-range"]

    def test_rows_sorted_by_label(self):
        _, run = looked_at(counting, labels=np.sort(Y))
        assert "sorted-by-label" in found(run)

    @pytest.mark.exhaustive
    def test_one_class_only(self):
        _, run = looked_at(prefetched, labels=np.zeros_like(Y))
        assert "single-class-labels" in found(run)
