"""The pipeline of a compiled Keras model on TensorFlow. Everything runs on copied weights."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_warnings_ignored
from diagnostics.collectors.keras.batch import EMPTY, as_array, batch_facts, inputs_of, named, row_classes, unpack
from diagnostics.collectors.keras.data import (
    KerasData,
    dataset_facts,
    kind_of,
    reread_batch,
    rows_of,
    rows_with_targets,
)
from diagnostics.collectors.keras.dependence.subject import size_of
from diagnostics.collectors.keras.examine.kept_outputs import LayerCalls, several_outputs
from diagnostics.collectors.keras.examine.reported_metrics import class_metrics, metric_facts
from diagnostics.collectors.keras.examine.stateless_copy import KerasSubsets
from diagnostics.collectors.keras.harmless import Code, of_call, of_loss, of_making, of_optimizer
from diagnostics.collectors.keras.losses import (
    as_written,
    classifies,
    counts_right_classes,
    loss_call,
    output_facts,
    own_loss,
    recognise_loss,
    weighs_classes,
    with_penalty,
)
from diagnostics.collectors.keras.model import (
    NOT_OFFERED,
    activation_before,
    computes_loss,
    describe_model,
    fixed_batch_size,
    gradient_facts,
    has_call,
    has_own_loss,
    has_own_train_step,
    has_parts_weights,
    has_weights,
    last_activation,
    with_weights,
)
from diagnostics.collectors.keras.optimizer import full_rate, optimizer_facts, optimizer_like, warms_up
from diagnostics.collectors.keras.replayable import python_functions
from diagnostics.collectors.keras.state import generators_of, global_states_kept
from diagnostics.collectors.shared.input_sample import samples_of_batches
from diagnostics.collectors.shared.learnability import KeptRows
from diagnostics.collectors.shared.loss_match import Recognised, at_unit_scale, is_far_above_chance
from diagnostics.collectors.shared.overfit_plan import (
    AWAITS_END,
    POOL_BATCHES,
    Pool,
    can_wait,
    has_settled,
    overfit,
    pool_of,
)
from diagnostics.collectors.shared.overfit_run import Plan, Run
from diagnostics.collectors.shared.pipeline import CannotJudge, Pipeline, StageFailed, UsersCodeRaised, users_code
from diagnostics.collectors.shared.reread import deep_copy
from diagnostics.collectors.shared.split_overlap import SECONDS, compared_rows, input_columns, row_digest
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputFacts, InputSample, TargetSides
from diagnostics.facts.layers import LayerFacts
from diagnostics.facts.loss_call import LossCall, LossCalls
from diagnostics.facts.loss_contracts import LossKind
from diagnostics.facts.pipeline import Fact, LossFacts

from .first_layers import first_layers
from .kept_outputs import KeptOutputs, keep_outputs
from .stateless_copy import KerasCopy

if TYPE_CHECKING:
    from diagnostics.collectors.keras.watch.sampled_rows import SampledRows

BATCHES = 16  # of either side, whose targets are compared, within `SECONDS`
MOST = 4096  # numbers of a batch of targets: more are pictures


class KerasPipeline(Pipeline):
    """`examine(model, data)`.

    Args:
        model: compiled. It is neither trained nor changed.
        data: what `fit` would be given: a `tf.data.Dataset`, a `PyDataset`, or arrays ``(x, y)``.
        evaluation: the same for evaluation, to be compared with the training rows.
        class_weights: whether `fit` is given class weights; None if that is not known.

    Attributes:
        planned_steps: of the training whose end the overfit may wait for; None if it is not to wait.
    """

    planned_steps: int | None = None
    rows_at_once: int | None = None  # in a batch, as `fit` was told
    not_offered = NOT_OFFERED
    must_go_unnoticed = False  # the script has not asked for this: code with side effects is not called
    preprocesses = True  # whether the data is yet to pass the preprocessor of a model of KerasHub

    def __init__(
        self, model: keras.Model, data: Any, evaluation: Any = None, class_weights: bool | None = None
    ) -> None:
        self.model = model
        self._given = data
        self._evaluation = evaluation
        self._class_weights = class_weights
        self.name = f"{type(model).__name__} with {kind_of(data)}"
        self._data: KerasData | None = None
        self._batches: Iterator[Any] | None = None  # after the one that is examined; None: to be read again
        self._unread = "the stage before failed"
        self._x: Any = None
        self._y: Any = None
        self._weights: Any = None
        self._copy: KerasCopy | None = None
        self._recognised = Recognised()
        self.awaits_weights = False  # the model has none yet, and cannot be built a second time
        self._penalty = 0.0
        self._outputs_shape: tuple[int, ...] = ()
        self._last: str | None = None  # function that the model ends in
        self.weights_of_classes: tuple[float, ...] | None = None  # given to `fit`, from class 0 on
        self.outputs_kept: KeptOutputs | None = None  # by `kept_rows`, where the loss is not plain
        self.rows_drawn: SampledRows | None = None  # likewise, by a running `fit`, whose data cannot be read
        # XLA looks a label out of range up without a complaint, and the loss is NaN.
        self.forward_is_harmless = bool(model.jit_compile)

    @property
    def batch_parts(self) -> tuple[Any, Any, Any] | None:
        """Inputs, target and sample weights of the batch that was examined; None if there was none."""
        return None if self._x is None else (self._x, self._y, self._weights)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """See `Pipeline.untouched`."""
        called = [f for given in (self._given, self._evaluation) for f in python_functions(given)]
        kept = global_states_kept(self._given, self._evaluation, *called, *generators_of(self.model))
        with kept, own_loss(self.model), own_warnings_ignored():  # what Keras warns of, it will say again in `fit`
            yield

    def data_sources(self) -> tuple[Any, ...]:
        """See `Pipeline.data_sources`."""
        return (self._given,)

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`."""
        if has_parts_weights(self.model):
            yield describe_model(self.model)
        given = self._given
        if isinstance(given, keras.utils.PyDataset):  # all else runs no Python that could edit rows
            reread = reread_batch(given)
            yield reread
            given = deep_copy(given)  # it may count how often it is read
        try:
            self._data = KerasData(given, fixed_batch_size(self.model))
        except CannotJudge as reason:
            self._unread = str(reason)
            raise
        yield dataset_facts(self._data, classifies(self.model.loss))
        if self._evaluation is not None:
            yield from compared_splits(self.model, self._data, KerasData(self._evaluation))

    def batch(self) -> Iterator[Fact]:
        """See `Pipeline.batch`."""
        if self._data is None:
            raise StageFailed(f"No batch was taken: {self._unread}.")
        self._batches = self._data.batches()
        batch = next(self._batches, None)
        if batch is None:
            raise StageFailed(EMPTY)
        self._x, self._y, self._weights = x, y, _ = self._as_tensors(batch)
        if any(part.ndim == 0 for part in keras.tree.flatten((self._x, self._y)) if tf.is_tensor(part)):
            raise StageFailed(
                f"The data ({kind_of(self._given)}) yields single rows, not batches. Batch it first: "
                "dataset.batch(32)."
            )
        yield batch_facts(x, y, self.model.loss)

    def forward(self) -> Iterator[Fact]:
        """See `Pipeline.forward`."""
        if (why := never_called(self.model)) is not None:
            raise CannotJudge(f"{why}, so loss, backward and overfit are left out")
        self._check(of_call(self.model), "the model")
        with own_step_may_differ(self.model):
            if not has_weights(self.model):
                self.awaits_weights = True
                self._check(of_making(self.model), "a second model")
                self.model = with_weights(self.model, self._x)
                self.awaits_weights = False
                yield describe_model(self.model)
            yield from first_layers(self.model, self._x)
            copy = KerasCopy(self.model, self._x, self._y, self._weights)
            trainable, other = copy.start()
            self._last, calls = last_activation(self.model), LayerCalls()
            with users_code(), calls.recorded() if self._last is None else nullcontext():
                answers = copy.predict(trainable, other, training=False)
            single = self._single(answers)
            if self._last is None and single is not None:  # a model whose graph of layers is not known
                self._last = calls.last_activation(keras.tree.flatten(answers)[0])
            outputs = output_facts(single, self.model.loss, self._last, self._single_target())
            outputs = replace(outputs, applied_to=activation_before(self.model))
            self._outputs_shape = outputs.shape
            yield outputs
            with users_code():
                activations = copy.activations()
            if activations:
                yield LayerFacts(activations)
        if has_own_train_step(self.model):
            raise CannotJudge(
                f"{type(self.model).__name__} has a train_step of its own: what its loss is cannot be known "
                "without taking a step, so loss, backward and overfit are left out"
            )
        if self.model.loss is not None and self._y is None:
            raise StageFailed(
                f"The data has no target: a batch is its inputs alone, and the loss, {as_written(self.model.loss)}"
                ", compares the prediction with one. Give inputs and target as a pair: (x, y)."
            )
        if computes_loss(self.model) and not has_own_loss(self.model) and not copy.adds_losses():
            raise StageFailed(
                "The model is compiled without a loss, and adds none itself, so there is nothing to train on. "
                "Give one: model.compile(optimizer=..., loss=...)."
            )
        self._check(of_loss(self.model), "the loss")
        self._copy = copy
        self._build_loss(answers)
        with users_code():
            loss, prediction = copy.loss(trainable, other, training=True)
            penalty = self._penalty = float(copy.penalty())
        value = float(loss)
        self._recognised = self._recognise(value - penalty, prediction, penalty)
        yield LossFacts(
            value=value,
            kind=self._recognised.kind,
            constant_baseline_loss=self._recognised.floor,
            class_weights=weighs_classes(self.model.loss, self._weights is not None, self._class_weights),
            weights=self.weights_of_classes,
            reads=self._recognised.reads,
            broadcast=self._recognised.broadcast,
            name=as_written(self.model.loss),
            non_finite_rows=None if math.isfinite(value) else copy.non_finite_rows(),
            masked=self._masked(answers),  # the compiled prediction has lost its mask
            accuracy=counts_right_classes(self.model),
            scaled=self._scaled_loss(value),
            evaluated=self._evaluated_loss(value),
        )
        if (call := self._loss_call(value - penalty, prediction)) is not None:
            yield LossCalls((call,))
        if single is None and self._weights is None:  # a weight of 0 may leave out a target that is not known
            several = several_outputs(self.model, answers, self._y, calls)
            yield from () if several is None else (several,)

    def backward(self) -> Iterator[Fact]:
        """See `Pipeline.backward`."""
        if self._copy is None:
            raise CannotJudge("the model was not run")
        with users_code():
            gradients = self._copy.gradients()
        norms = {
            variable.path: float(tf.norm(tf.cast(tf.convert_to_tensor(gradient), tf.float32)))
            for variable, gradient in zip(self.model.trainable_variables, gradients, strict=True)
            if gradient is not None
        }
        yield gradient_facts(self.model, norms)

    def optimizer_step(self) -> Iterator[Fact]:
        """See `Pipeline.optimizer_step`."""
        yield optimizer_facts(self.model)

    def overfit(self) -> Iterator[Fact]:
        """See `Pipeline.overfit`."""
        copy = self._copy
        if copy is None:
            raise CannotJudge("the model was not run")
        if not self.model.trainable_variables:
            raise CannotJudge("the model has no trainable weights")
        self._check(of_optimizer(self.model.optimizer), "a second optimizer")
        waits = can_wait(self.planned_steps, size_of(self.model))
        self.awaits_end = not self.awaits_end and waits
        if self.awaits_end:
            copy.hold_start()
            self._batches = None  # an iterator may hold rows
            raise CannotJudge(AWAITS_END)
        arrays = [array for value in named(self._x).values() if (array := as_array(value)) is not None]
        rows = [tuple(array[row] for array in arrays) for row in range(len(arrays[0]))] if arrays else []
        with users_code():
            yield from overfit(
                self._train_copy,
                floor=self._recognised.floor,
                distinct_inputs=len({row_digest((*row, None), input_columns((*row, None))) for row in rows}),
                their_rate=full_rate(self.model.optimizer),
                warms_up=warms_up(self.model.optimizer),
                pool=self._pool,
                num_trainable=sum(int(np.prod(v.shape)) for v in self.model.trainable_variables),
                seconds=self.overfit_seconds,
            )

    def overfit_is_needed(self, losses: Sequence[float]) -> bool:
        """See `Pipeline.overfit_is_needed`."""
        return not has_settled(losses, self._recognised.floor)

    def evaluation_batch(self) -> Any:
        """See `Pipeline.evaluation_batch`."""
        given = self._evaluation
        if given is None or isinstance(given, keras.utils.PyDataset):  # which may count how often it is read
            return None
        return next(KerasData(given).batches(), None)

    def evaluation(self) -> Iterator[Fact]:
        """See `Pipeline.evaluation`. Tests the metrics that compare class numbers."""
        target = self._single_target()
        if target is None or not (metrics := class_metrics(self.model)):
            raise CannotJudge("no metric compares class numbers")
        yield metric_facts(metrics, np.asarray(target), self._outputs_shape)

    def subsets(self, classes: frozenset[int]) -> KerasSubsets:
        """See `Pipeline.subsets`."""
        if self._copy is None:
            raise CannotJudge("the model was not run")
        if not self.model.trainable_variables:
            raise CannotJudge("the model has no trainable weights")
        further = (self._as_tensors(batch) for batch in self._further_batches())
        first = (self._x, self._y, self._weights)
        return KerasSubsets(self.model, first, further, self._recognised, self._penalty, classes)

    def kept_rows(self) -> KeptRows | None:
        """Copy rows of the data, to be compared with the run when it is over; None if the loss is not plain."""
        if self._data is None or isinstance(self._given, keras.utils.PyDataset):
            return None
        if (plain := self.plain_loss) is not None:
            return rows_with_targets(self._data, *plain)
        if self.scores_outputs:
            self.outputs_kept = keep_outputs(self.model, self._data)
        return None

    @property
    def scores_outputs(self) -> bool:
        """Whether the outputs are to be judged one by one, since the loss alone does not show what was learned."""
        unweighted = self._weights is None and self._class_weights is not True
        return self.plain_loss is None and self._copy is not None and unweighted

    @property
    def plain_loss(self) -> tuple[LossKind, int | None] | None:
        """The kind of the loss, and how many classes it tells apart; None if weights or penalties count, too."""
        weighted = self._weights is not None or self._class_weights is True or self._penalty
        found = self._recognised
        return None if weighted or found.kind == "other" else (found.kind, found.num_classes)

    # --- parts ----------------------------------------------------------------------------------------------

    def _check(self, code: Code, what: str) -> None:
        if self.must_go_unnoticed:
            code.check(what)

    def _as_tensors(self, batch: Any) -> tuple[Any, Any, Any]:
        """Part a batch into inputs, target and sample weights, as tensors; what is not there is None."""
        return _tensors_of(batch, self.model, self.preprocesses)

    def _train_copy(self, plan: Plan) -> Run:
        assert self._copy is not None
        return self._copy.run(plan, lambda: optimizer_like(self.model.optimizer))

    def _pool(self) -> Pool | None:
        """Take further batches, for a classifier of whole rows; None if there are none."""
        assert self._copy is not None
        labels = row_classes({}, self._y)
        if self._recognised.num_classes is None or self._weights is not None or labels is None:
            return None
        seen = [labels]
        self._copy.further.clear()
        for batch in islice(self._further_batches(), POOL_BATCHES - 1):
            parts = self._as_tensors(batch)
            more = row_classes({}, parts[1])
            if more is None or len(more) != len(labels):  # the last one may be shorter: another trace
                break
            self._copy.further.append(parts)
            seen.append(more)
        return pool_of(seen, self._recognised.floor or 0.0, self._recognised.num_classes)

    def _further_batches(self) -> Iterator[Any]:
        if self._batches is None:
            assert self._data is not None
            return islice(self._data.batches(), 1, None)
        return self._batches

    def _recognise(self, value: float, prediction: Any, penalty: float) -> Recognised:
        """Say which loss it is that gives `value`, the penalty apart, and add the penalty to its floor."""
        single = self._single(prediction)
        target = self._single_target()
        if single is None or target is None:
            return Recognised()
        return with_penalty(
            recognise_loss(value, single, np.asarray(target), self.model.loss, self._last), penalty
        )

    def _loss_call(self, value: float, prediction: Any) -> LossCall | None:
        """Describe the call of the only loss; None if there are several."""
        single, target = self._single(prediction), self._single_target()
        if single is None or target is None:
            return None
        weighted = self._weights is not None or self._class_weights is True
        return loss_call(value, single, np.asarray(target), self.model.loss, weighted)

    def _scaled_loss(self, value: float) -> float | None:
        """Compute the loss again with numbers and pixels at unit scale; None where the loss is near chance."""
        assert self._copy is not None
        if not is_far_above_chance(value - self._penalty, self._recognised.num_classes):
            return None
        parts = keras.tree.flatten(self._x)
        changed = [one.dtype.is_floating or one.dtype == tf.uint8 for one in parts]
        if not any(changed):
            return None
        scaled = [
            tf.convert_to_tensor(at_unit_scale(one.numpy())) if changes else one
            for one, changes in zip(parts, changed, strict=True)
        ]
        try:
            x = keras.tree.pack_sequence_as(self._x, scaled)
            return float(self._copy.loss(*self._copy.start(), training=True, x=x)[0])
        except Exception:  # whatever the user's code raises at values that it was never given
            return None

    def _evaluated_loss(self, value: float) -> float | None:
        """Compute the loss again in inference mode; None where the loss is near chance."""
        assert self._copy is not None
        if not is_far_above_chance(value - self._penalty, self._recognised.num_classes):
            return None
        with users_code():
            return float(self._copy.loss(*self._copy.start(), training=False)[0])

    def _masked(self, prediction: Any) -> bool | None:
        """Say whether a mask or sample weights leave something out of the loss."""
        if self._weights is not None or any(
            getattr(part, "_keras_mask", None) is not None for part in keras.tree.flatten(prediction)
        ):
            return True
        return False if self._recognised.kind != "other" else None

    def _build_loss(self, prediction: Any) -> None:
        """Let Keras pair losses with outputs, which it cannot do while values are replaced."""
        pairing = getattr(self.model, "_compile_loss", None)
        if pairing is not None and not pairing.built and self._y is not None:
            with users_code():
                pairing.build(self._y, prediction)

    def _single_target(self) -> Any:
        """Return the target if there is one, else None."""
        return None if self._y is None or keras.tree.is_nested(self._y) else self._y

    def _single(self, prediction: Any) -> np.ndarray | None:
        """Return the prediction (n, ...) if there is one output, else None."""
        flat = keras.tree.flatten(prediction)
        return np.asarray(tf.cast(flat[0], tf.float32)) if len(flat) == 1 else None


def _tensors_of(batch: Any, model: keras.Model, preprocesses: bool) -> tuple[Any, Any, Any]:
    """Part a batch into inputs, target and sample weights; what is not there is None.

    Args:
        batch: as the data yields it.
        model: which may be one of KerasHub, with a preprocessor.
        preprocesses: whether the batch is yet to pass that preprocessor.
    """
    parts = unpack(batch)
    preprocessor = getattr(model, "preprocessor", None) if preprocesses else None
    if preprocessor is not None and hasattr(model, "preprocess_samples"):
        with users_code():
            parts = model.preprocess_samples(*parts)
    with users_code():  # what TensorFlow cannot take, `fit` cannot take either
        x, y, weights = (
            None if part is None else keras.tree.map_structure(tf.convert_to_tensor, part) for part in parts
        )
    return x, y, weights


def never_called(model: keras.Model) -> str | None:
    """Say why the model as a whole is not run: its own step calls its parts; None if it may call the model.

    That it may be called otherwise is no reason to: the call would mark it as built.
    """
    if not has_own_train_step(model):
        return None
    name = type(model).__name__
    if not has_call(model):
        return f"{name} has no call: its train_step calls its parts"
    if has_parts_weights(model) and not has_weights(model):
        return f"{name} was not called yet, and its train_step may call its parts alone, which have their weights"
    return None


@contextmanager
def own_step_may_differ(model: keras.Model) -> Iterator[None]:
    """Let no call of ours prove anything where the user's own step may call the model with something else.

    A siamese network is called with all three parts of a batch, a diffusion model with an image and a time.
    Whether the user's own calls raise is seen when they are made.

    Raises:
        CannotJudge: the user's code raised, and the model has a train_step of its own.
    """
    try:
        yield
    except UsersCodeRaised as raised:
        if not has_own_train_step(model):
            raise
        raise CannotJudge(
            f"{type(model).__name__} has a train_step of its own, which may call it with something else than "
            f"the inputs of a batch: called with these it raised {raised}"
        ) from raised


def compared_splits(model: keras.Model, training: KerasData, evaluation: KerasData) -> Iterator[Fact]:
    """Yield what the data shares with the evaluation data, and their targets, if `fit` compares these itself."""
    sides = None if has_own_train_step(model) else _target_sides(training, evaluation)
    if sides is not None:
        yield sides
    for split in compared_rows(rows_of(training, SECONDS), rows_of(evaluation, SECONDS)):
        yield replace(split, training_size=training.size, evaluation_size=evaluation.size)


def _target_sides(training: KerasData, evaluation: KerasData) -> TargetSides | None:
    """Return the targets of both sides, with a part of the inputs; None if they are not one array of numbers."""
    ours, theirs = _read(training), _read(evaluation)
    if ours is None or theirs is None or ours[0].shape[1:] != theirs[0].shape[1:]:
        return None
    both = ours[1].keys() & theirs[1].keys()
    inputs = InputFacts({name: ours[1][name] for name in both}, {name: theirs[1][name] for name in both})
    return TargetSides(ours[0], theirs[0], inputs if both else None)


def _read(data: KerasData) -> tuple[Array, dict[str, InputSample]] | None:
    targets, inputs, begun = list[Array](), [], time.monotonic()
    for batch in islice(data.batches(), BATCHES):
        _, y, _ = unpack(batch)
        values = None if y is None or isinstance(y, dict | list | tuple) else as_array(y)
        if values is None or values.dtype.kind != "f" or not values.ndim or values.size > MOST:
            return None
        targets.append(values.reshape(len(values), -1).astype(np.float64))
        inputs.append(inputs_of(batch))
        if time.monotonic() - begun > SECONDS:
            break
    if not targets or len({part.shape[1] for part in targets}) > 1:
        return None
    return np.concatenate(targets), samples_of_batches(inputs)
