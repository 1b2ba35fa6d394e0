"""Models, losses and a schedule for Keras whose code has a side effect, each with what tells how often it ran."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.keras.programs import keras, layers, tf

CACHE: dict[str, int] = {}
HISTORY: list[int] = []
TOTAL = 0


class Program:
    """What the code of one program reaches: a file, standard output, and objects that count.

    Attributes:
        notice: returns what the program has noticed.
    """

    def __init__(self, folder: Path, capsys: Any) -> None:
        global TOTAL
        TOTAL = 0
        CACHE.clear()
        HISTORY.clear()
        self.file = folder / "calls.txt"
        self.file.write_text("")
        capsys.readouterr()
        self._capsys = capsys
        self.count, self.queue = itertools.count(), queue.Queue()
        for number in range(1000):
            self.queue.put(number)
        self.noise = iter(np.random.default_rng(7).normal(size=(1000, 1, 8)).astype("float32"))
        self.generator = np.random.default_rng(11)
        self.stream = tf.random.Generator.from_seed(3)
        self.variable = tf.Variable(0.0)

    def notice(self) -> list[str]:
        """Return how often the code ran, by all that it may leave behind."""
        return [
            self._capsys.readouterr().out, self.file.read_text(), str(next(self.count)), str(self.queue.qsize()),
            str(next(self.noise)), str(self.generator.normal()), str(self.stream.uniform((1,)).numpy()),
            str(self.variable.numpy()), str(CACHE), str(HISTORY), str(TOTAL),
        ]  # fmt: skip

    def built(self, *before: Any, loss: Any = "mse") -> tuple[Any, Callable[[], list[str]], Any]:
        """Return a model of a layer, after others; how to see what was noticed; and the loss."""
        model = keras.Sequential([keras.Input((8,)), *before, layers.Dense(2)])
        return model, self.notice, loss


def _of_layer(work: Callable[[Program, Any, Any], Any]) -> Callable[[Path, Any], Any]:
    def build(folder: Path, capsys: Any) -> Any:
        program = Program(folder, capsys)

        class Own(layers.Layer):
            calls = 0

            def call(self, inputs: Any) -> Any:
                return work(program, self, inputs)

        layer = Own()
        model, notice, loss = program.built(layer)
        return model, lambda: [*notice(), str(layer.calls), str(vars(layer).get("seen"))], loss

    return build


def _of_lambda(folder: Path, capsys: Any) -> Any:
    program = Program(folder, capsys)

    def twice(inputs: Any) -> Any:
        print("lambda")
        return inputs * 2

    return program.built(layers.Lambda(twice))


def _of_regularizer(folder: Path, capsys: Any) -> Any:
    program = Program(folder, capsys)

    class Printing(keras.regularizers.Regularizer):
        def __call__(self, weights: Any) -> Any:
            print("penalty")
            return 1e-3 * keras.ops.sum(weights**2)

    return program.built(layers.Dense(4, kernel_regularizer=Printing()))


def prints(_program: Program, _layer: Any, inputs: Any) -> Any:
    print("call")
    return inputs


def writes(program: Program, _layer: Any, inputs: Any) -> Any:
    with program.file.open("a") as file:
        file.write("call\n")
    return inputs


def counts(_program: Program, layer: Any, inputs: Any) -> Any:
    layer.calls += 1
    return inputs


def counts_in_a_global(_program: Program, _layer: Any, inputs: Any) -> Any:
    global TOTAL
    TOTAL += 1
    return inputs


def fills_a_cache(_program: Program, _layer: Any, inputs: Any) -> Any:
    CACHE[f"shape {len(CACHE)}"] = 1
    return inputs


def remembers(_program: Program, _layer: Any, inputs: Any) -> Any:
    HISTORY.append(1)
    return inputs


def counts_on(program: Program, _layer: Any, inputs: Any) -> Any:
    return inputs * (1.0 + 1e-3 * next(program.count))


def takes_from_a_queue(program: Program, _layer: Any, inputs: Any) -> Any:
    return inputs * (1.0 + 1e-3 * program.queue.get())


def takes_noise(program: Program, _layer: Any, inputs: Any) -> Any:
    return inputs + 0.1 * next(program.noise)


def draws_from_its_stream(program: Program, _layer: Any, inputs: Any) -> Any:
    return inputs + 0.1 * program.stream.normal((1, 8))


def draws_with_numpy(program: Program, _layer: Any, inputs: Any) -> Any:
    return inputs + 0.1 * program.generator.normal()


def assigns(program: Program, _layer: Any, inputs: Any) -> Any:
    program.variable.assign_add(1.0)
    return inputs + program.variable


def calls_python(program: Program, _layer: Any, inputs: Any) -> Any:
    def noted(values: Any) -> Any:
        with program.file.open("a") as file:
            file.write("py_function\n")
        return values

    return tf.ensure_shape(tf.py_function(noted, [inputs], tf.float32), (None, 8))


EFFECTS = (
    prints, writes, counts, counts_in_a_global, fills_a_cache, remembers, counts_on, takes_from_a_queue,
    takes_noise, draws_from_its_stream, draws_with_numpy, assigns, calls_python,
)  # fmt: skip
CALLS: dict[str, Callable[[Path, Any], Any]] = {
    **{effect.__name__: _of_layer(effect) for effect in EFFECTS},
    "of_a_lambda": _of_lambda,
}


def _printing(folder: Path, capsys: Any) -> Any:
    def loss(y_true: Any, y_pred: Any) -> Any:
        print("loss")
        return keras.ops.mean((y_true - y_pred) ** 2)

    return Program(folder, capsys).built(loss=loss)


def _counting(folder: Path, capsys: Any) -> Any:
    class Loss(keras.losses.Loss):
        calls = 0

        def call(self, y_true: Any, y_pred: Any) -> Any:
            self.calls += 1
            return keras.ops.mean((y_true - y_pred) ** 2)

    loss = Loss()
    model, notice, _ = Program(folder, capsys).built(loss=loss)
    return model, lambda: [*notice(), str(loss.calls)], loss


def _annealed(folder: Path, capsys: Any) -> Any:
    program = Program(folder, capsys)

    def loss(y_true: Any, y_pred: Any) -> Any:
        return keras.ops.mean((y_true - y_pred) ** 2) * (1.0 + next(program.count))

    return program.built(loss=loss)


LOSSES: dict[str, Callable[[Path, Any], Any]] = {
    "that_prints": _printing,
    "that_counts": _counting,
    "that_is_annealed": _annealed,
    "with_a_penalty_that_prints": _of_regularizer,
}


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that prints when it is asked for."""

    def __new__(cls, _notice: Any) -> Any:
        """Return an optimizer with such a rate."""
        made = super().__new__(cls)
        return keras.optimizers.SGD(made)

    def __call__(self, step: Any) -> Any:
        print("rate")
        return 0.01 / (1.0 + 0.1 * keras.ops.cast(step, "float32"))


def counting_steps(folder: Path, capsys: Any) -> Any:
    """Build a model whose own train_step and call count, and its own metric, too."""
    program = Program(folder, capsys)

    class Metric(keras.metrics.Mean):
        def update_state(self, *given: Any, **options: Any) -> Any:
            print("metric")
            return super().update_state(*given, **options)

    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.tracker = layers.Dense(2), Metric(name="loss")

        def call(self, inputs: Any) -> Any:
            print("call")
            return self.dense(inputs)

        def train_step(self, data: Any) -> Any:
            print("step")
            x, y = data
            with tf.GradientTape() as tape:
                loss = keras.ops.mean((self(x) - y) ** 2)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            self.tracker.update_state(loss)
            return {"loss": self.tracker.result()}

    return Net(), program.notice, None
