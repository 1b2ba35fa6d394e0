"""Loops of one's own around Keras' optimizers, eager and within a `tf.function`, and what is seen of them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from diagnostics.api.watch_report import watch_report
from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras.discover.tape_loops import TapeLoopFinder
from diagnostics.facts.calls import TapesWithoutGradient
from diagnostics.facts.loss_graph import LEAF, Operand, RowsRead
from diagnostics.rules.model.loss.broadcast_loss import BroadcastLoss

FAULTS = []
INPUTS = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
LABELS = INPUTS[:, :3].argmax(1)
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def report_on(loop):
    return watch_report(loop, loop.name)


@pytest.fixture
def loops():
    """The loops that a finder found; it looks on for as long as the test takes."""
    found, faults = [], []
    finder = TapeLoopFinder(lambda loop, *_: found.append(loop), faults.append, every=4)
    finder.found, finder.faults = found, faults
    yield finder
    finder.close()
    assert faults == []


def network():
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(3)])


def step_of(model, optimizer):
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = LOSS(labels, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def train(kind, steps=10, optimizer=None, scale=1.0):
    model, optimizer = network(), optimizer or keras.optimizers.Adam(1e-2)
    step = step_of(model, optimizer)
    if kind == "function":
        step = tf.function(step)
    elif kind == "train_on_batch":
        model.compile(optimizer, LOSS)
        step = model.train_on_batch
    losses = [float(np.ravel(step(INPUTS * scale, LABELS))[0]) for _ in range(steps)]
    return losses, [variable.numpy() for variable in model.trainable_variables]


@pytest.mark.parametrize("kind", ["eager", "function", "train_on_batch"])
class TestEveryKind:
    def test_of_loop_is_found_with_its_steps_losses_and_updates(self, loops, kind):
        losses, _ = train(kind)
        (loop,) = loops.found
        history = loop.history()
        assert (history.steps.total_steps, len(history.updates.layers)) == (10, 2)
        assert history.losses.values == pytest.approx(losses, rel=1e-6)
        # While a function is traced, in its first step, the weights have no values yet.
        assert list(history.updates.steps) == ([0, 1, 2, 4, 8] if kind == "eager" else [1, 2, 4, 8])
        assert (history.updates.ratios > 0).all()
        assert np.allclose(history.steps.learning_rates, 1e-2)

    def test_of_loop_gives_the_same_bits_as_without(self, kind):
        alone = train(kind)
        finder = TapeLoopFinder(lambda *_: None, FAULTS.append)
        seen = train(kind)
        finder.close()
        assert FAULTS == []
        assert alone[0] == seen[0]
        assert all(np.array_equal(a, b) for a, b in zip(alone[1], seen[1], strict=True))

    def test_of_loop_reports_a_loss_that_is_not_finite(self, loops, kind):
        train(kind, steps=4, scale=np.nan)
        report = report_on(loops.found[0])
        assert (report.findings[0].rule, report.findings[0].step) == ("non-finite-loss", 0)

    def test_of_loop_in_which_nothing_moves(self, loops, kind):
        train(kind, steps=10, optimizer=keras.optimizers.SGD(0.0))
        assert "unchanged-parameters" in [finding.rule for finding in report_on(loops.found[0]).findings]


class TestGradients:
    def test_are_measured_by_layer_where_a_step_is_eager(self, loops):
        model, optimizer = network(), keras.optimizers.SGD(0.1)
        with tf.GradientTape() as tape:
            loss = LOSS(LABELS, model(INPUTS))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        history = loops.found[0].history()
        norms = [float(tf.norm(g)) for g in gradients]
        expected = [np.hypot(*norms[:2]), np.hypot(*norms[2:])]
        assert history.gradients.layer_norms[0] == pytest.approx(expected, rel=1e-5)
        assert history.gradients.norms[0] == pytest.approx(np.hypot(*expected), rel=1e-5)

    def test_of_an_embedding_are_slices(self, loops):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Embedding(10, 3), keras.layers.Flatten()])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(np.array([[1, 2, 3, 4]])) ** 2)
        keras.optimizers.SGD(0.1).apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        assert loops.found[0].history().gradients.norms[0] > 0

    def test_are_said_to_be_hidden_within_a_function(self, loops):
        train("function")
        (hidden,) = [stage for stage in report_on(loops.found[0]).stages if stage.name == "gradients"]
        assert (hidden.status, hidden.detail) == (
            "not judged",
            "the step is a single tf.function, which does not show them",
        )


class TestSeveral:
    def test_optimizers_have_a_loop_and_a_loss_each(self, loops):
        first, second = network(), network()
        steps = [step_of(first, keras.optimizers.SGD(0.1)), step_of(second, keras.optimizers.Adam(1e-3))]
        losses = [[float(step(INPUTS, LABELS)) for step in steps] for _ in range(5)]
        assert [list(loop.history().losses.values) for loop in loops.found] == [
            pytest.approx([row[number] for row in losses]) for number in (0, 1)
        ]

    def test_tapes_in_one_step_as_a_gan_has_them(self, loops):
        first, second = network(), network()
        optimizers = keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.2)
        with tf.GradientTape() as one, tf.GradientTape() as other:
            losses = LOSS(LABELS, first(INPUTS)), 2 * LOSS(LABELS, second(INPUTS))
        gradients = [
            one.gradient(losses[0], first.trainable_variables),
            other.gradient(losses[1], second.trainable_variables),
        ]
        for optimizer, g, model in zip(optimizers, gradients, (first, second), strict=True):
            optimizer.apply(g, model.trainable_variables)
        assert [loop.history().losses.values[0] for loop in loops.found] == pytest.approx(
            [float(x) for x in losses]
        )

    def test_optimizers_in_one_function_have_no_loss_that_could_be_told_apart(self, loops):
        steps = [step_of(network(), keras.optimizers.SGD(0.1)) for _ in range(2)]

        @tf.function
        def step(inputs, labels):
            return steps[0](inputs, labels) + steps[1](inputs, labels)

        for _ in range(4):
            step(INPUTS, LABELS)
        assert [(loop.steps, loop.history().losses) for loop in loops.found] == [(4, None), (4, None)]


class TestLeftAlone:
    def test_what_the_library_itself_trains_is_no_loop(self, loops):
        with own_run():
            train("eager")
        assert loops.found == []

    def test_fit_is_somebody_elses(self, loops):
        model = network()
        model.compile(keras.optimizers.SGD(0.1), LOSS)
        with loops.suspended():
            model.fit(INPUTS, LABELS, verbose=0)
        assert loops.found == []

    def test_an_error_of_the_script_is_the_scripts(self, loops):
        with pytest.raises(ValueError, match="No gradients provided"):
            keras.optimizers.SGD(0.1).apply([None], [keras.Variable(1.0)])

    def test_after_the_end_nothing_is_left(self):
        before = tf.GradientTape.gradient, keras.optimizers.Optimizer.apply, tf.function(len).__class__.__call__
        TapeLoopFinder(lambda *_: None, FAULTS.append).close()
        after = tf.GradientTape.gradient, keras.optimizers.Optimizer.apply, tf.function(len).__class__.__call__
        assert before == after


def difference_in(graph):
    finding = BroadcastLoss().from_difference(graph)
    return finding and tuple(finding.evidence.values())


class TestGraph:
    """Of the loss of a step that is traced, and the difference of a column and a row in it."""

    @staticmethod
    def train(loss_of):
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
        optimizer = keras.optimizers.SGD(1e-2)

        @tf.function
        def step(inputs, target):
            with tf.GradientTape() as tape:
                loss = loss_of(model(inputs), target)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        data = tf.data.Dataset.from_tensor_slices((INPUTS, INPUTS[:, 0])).batch(20)
        for inputs, target in data:
            step(inputs, target)

    def test_holds_what_depends_on_weights(self, loops):
        self.train(lambda prediction, target: tf.reduce_mean(prediction - tf.square(target[:, None])))
        mean, difference, *nodes = loops.found[0].graph.nodes
        assert (mean.operation, mean.shape, mean.operands[0]) == ("Mean", (), Operand(1, (20, 1)))
        assert difference.operands == (Operand(2, (20, 1)), Operand(shape=(20, 1), is_argument=True))
        assert {node.operation for node in nodes} == {"Add", "MatMul", "ReadVariableOp", LEAF}

    def test_of_a_prediction_that_is_a_column(self, loops):
        self.train(lambda prediction, target: tf.reduce_mean(tf.square(prediction - target)))
        (loop,) = loops.found
        assert difference_in(loop.graph) == ([20, 1], [20])

    def test_of_a_target_that_is_a_column(self, loops):
        self.train(lambda p, t: tf.reduce_sum(tf.abs(t[:, None] - tf.squeeze(p, -1))) / 20.0)
        assert difference_in(loops.found[0].graph) == ([20], [20, 1])

    @pytest.mark.parametrize(
        "loss_of",
        [
            lambda p, t: tf.reduce_mean((p - t[:, None]) ** 2),
            lambda p, t: tf.reduce_mean((tf.squeeze(p, -1) - t) ** 2),
            lambda p, t: tf.reduce_mean(keras.losses.mean_squared_error(t, p)),
            lambda p, t: tf.reduce_mean(tf.nn.relu(1 - (p - tf.transpose(p)) * tf.sign(t[:, None] - t[None, :]))),
            lambda p, t: tf.reduce_mean((p - tf.constant([0.1, 0.5, 0.9])) ** 2) + 0 * tf.reduce_sum(t),
            lambda p, t: tf.reduce_mean((p - tf.squeeze(p, -1)) ** 2) + 0 * tf.reduce_sum(t),
        ],
        ids=["columns", "rows", "of Keras", "pairs on purpose", "levels", "of predictions"],
    )
    def test_is_none_where_shapes_are_meant(self, loops, loss_of):
        self.train(loss_of)
        assert difference_in(loops.found[0].graph) is None

    @pytest.mark.parametrize(
        ("options", "evidence"),
        [
            ({"axis": 1}, {"prediction_shape": [20, 20], "target_shape": [20]}),
            ({"axis": 1, "batch_dims": 1}, None),
        ],
        ids=["of all rows", "of each row"],
    )
    def test_of_columns_that_are_looked_up_and_a_target_network(self, loops, options, evidence):
        online, target = (keras.Sequential([keras.Input((6,)), keras.layers.Dense(4)]) for _ in range(2))
        optimizer = keras.optimizers.SGD(1e-2)

        @tf.function
        def step(inputs, actions, rewards):
            best = tf.argmax(online(inputs), axis=1)
            wanted = rewards + 0.9 * tf.gather(target(inputs), best, axis=1, batch_dims=1)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(wanted - tf.gather(online(inputs), actions, **options)))
            gradients = tape.gradient(loss, online.trainable_variables)
            optimizer.apply_gradients(zip(gradients, online.trainable_variables, strict=True))

        step(INPUTS[:20], np.arange(20) % 4, INPUTS[:20, 0])
        finding = BroadcastLoss().from_lookup(loops.found[0].graph)
        assert (finding and finding.evidence) == evidence

    def test_of_a_column_and_the_row_of_a_target_network(self, loops):
        target = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        self.train(lambda p, t: tf.reduce_mean(tf.square(p - t * target(t[:, None])[:, 0])))
        assert difference_in(loops.found[0].graph) == ([20, 1], [20])

    @pytest.mark.parametrize(
        ("numbers", "rows"),
        [
            (np.array([0, 1] * 10), RowsRead(20, 20, {0: 10, 1: 10})),
            (tf.constant([3, 3]), RowsRead(20, 2, {3: 2})),
            (tf.Variable([0, 1]), None),
        ],
        ids=["written into the graph", "captured", "that may change"],
    )
    def test_holds_the_rows_that_are_looked_up(self, loops, numbers, rows):
        self.train(lambda p, t: tf.reduce_mean(tf.gather(p, numbers)) + 0 * tf.reduce_sum(t))
        (gather,) = [node for node in loops.found[0].graph.nodes if node.operation == "GatherV2"]
        assert gather.rows == rows

    def test_within_a_train_step_of_ones_own(self, loops):
        class Regressor(keras.Sequential):
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((y - self(x, training=True)) ** 2)
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
                return {"loss": loss}

        model = Regressor([keras.Input((6,)), keras.layers.Dense(1)])
        model.compile("sgd")
        with loops.suspended():
            model.fit(tf.data.Dataset.from_tensor_slices((INPUTS, INPUTS[:, 0])).batch(20), verbose=0)
        assert difference_in(loops.graph()) == ([None, 1], [None])
        assert loops.graph() is None
        assert loops.found == []


def test_tapes_that_no_gradient_is_taken_from_are_counted(loops):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(3):
        for start in range(0, 64, 16):
            with tf.GradientTape() as tape:
                loss = LOSS(LABELS[start : start + 16], model(INPUTS[start : start + 16]))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    (loop,) = loops.found
    assert loop.tapes.facts() == TapesWithoutGradient(steps=3, tapes=9, fewest=3)


def test_a_tape_within_another_and_one_for_validation_are_not(loops):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
    optimizer, inputs = keras.optimizers.SGD(0.1), tf.constant(INPUTS)
    for _ in range(2):
        for _ in range(3):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as tape:
                    tape.watch(inputs)
                    answers = model(inputs)
                loss = LOSS(LABELS, answers) + tf.reduce_mean(tf.square(tape.gradient(answers, inputs)))
            gradients = outer.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        for _ in range(4):
            with tf.GradientTape():
                LOSS(LABELS, model(inputs))
    (loop,) = loops.found
    assert loop.tapes.facts() is None


def train_variables(name, function=False):
    """Train variables of TensorFlow's own, without a Keras model; return the losses."""
    optimizer, start = keras.optimizers.SGD(0.1), np.ones((6, 3), np.float32) / 6
    weights, bias = (tf.Variable(part, name=name) for part in (start, np.zeros(3, np.float32)))

    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = LOSS(labels, inputs @ weights + bias)
        gradients = tape.gradient(loss, [weights, bias])
        optimizer.apply_gradients(zip(gradients, [weights, bias], strict=True))
        return loss

    step = tf.function(step) if function else step
    return [float(step(tf.constant(INPUTS), tf.constant(LABELS))) for _ in range(10)]


class TestVariablesOfTensorFlow:
    @pytest.mark.parametrize(
        ("name", "layers"), [(None, ("variable 1", "variable 2")), ("out/part", ("out",)), ("w", ("w",))]
    )
    def test_are_watched_as_those_of_keras_are(self, loops, name, layers):
        losses = train_variables(name)
        (loop,) = loops.found
        history = loop.history()
        assert history.losses.values == pytest.approx(losses, rel=1e-6)
        assert history.updates.layers == layers
        assert history.gradients.norms.shape[0] == 10
        assert (history.updates.ratios[1:] > 0).all()

    def test_are_watched_within_a_function(self, loops):
        losses = train_variables(None, function=True)
        (loop,) = loops.found
        assert loop.history().losses.values == pytest.approx(losses, rel=1e-6)

    def test_get_the_same_losses_as_without(self, loops):
        watched = train_variables(None)
        loops.close()
        assert train_variables(None) == watched
