"""Finds losses of a model's own layers that a step of the user's own never asks for."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras import internals
from diagnostics.facts.calls import UnreadLosses
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

OPERATIONS = 5000  # before a loss that are walked: a graph of a large model has more


@dataclass
class OwnLoss:
    """The penalty of one variable, or what one layer adds by `add_loss`.

    Attributes:
        owner: the name of the layer.
        read: whether the script has asked for it.
        is_added: by `add_loss`.
    """

    owner: str
    read: bool = False
    is_added: bool = False


class LayerLosses:
    """Remembers which layers add a loss, and whose `losses` are read, other than in an evaluation.

    Args:
        guard: runs the work.
    """

    def __init__(self, guard: FaultGuard) -> None:
        self._guard = guard
        self._added: IdentityMap[Any, OwnLoss] = IdentityMap()  # by layer that has called `add_loss`
        self._roots: IdentityMap[Any, Any] = IdentityMap()  # by such a layer: the model that the script called
        self._asked: IdentityMap[Any, None] = IdentityMap()  # layers and models with all inside that were asked
        self._penalties: IdentityMap[Any, OwnLoss] = IdentityMap()  # by variable
        self._by_hand = False  # a regularizer is called by the script
        self._testing = self._reading = 0

    def listen(self) -> Unsubscribe:
        """Start listening, once Keras has layers; return what ends it."""
        return subscribe(
            self._guard.attempt,
            (taps.add_loss.before, self._adds),
            (taps.own_losses.before, self._reads),
            (taps.regularization_losses.before, self._asks),
            (taps.regularization_losses.ended, self._asked_for),
            (taps.regularizer_call.before, self._calls_regularizer),
            (taps.tape_gradient.before, self._differentiates),
        )

    def listen_to_tests(self) -> Unsubscribe:
        """Within a `test_step`, let reading count for nothing; return what ends it."""
        return subscribe(
            self._guard.attempt, (taps.test_step.before, self._tests), (taps.test_step.ended, self._tested)
        )

    def of_model(self, model: Any, step: Literal["train_step", "compute_loss"]) -> UnreadLosses | None:
        """Return the losses that nothing reads in a model with its own step or loss; None if all are read."""
        added = [self._added[layer] for layer in model._flatten_layers() if layer in self._added]
        return self._facts(step, [*self._of(model.trainable_variables), *added])

    def of_loop(self, losses: Iterable[OwnLoss]) -> UnreadLosses | None:
        """Return the losses that nothing reads in a loop; None if all are read."""
        return self._facts("loop", losses)

    def of_variables(self, variables: Sequence[Any]) -> tuple[OwnLoss, ...]:
        """Return penalties of variables, and what layers have added so far that depends on them.

        They know later whether they were read, and keep no variable alive.
        """
        trained = set(map(id, variables))
        added = [
            loss
            for layer, loss in self._added.items()
            if _trains(layer, root() if (root := self._roots.get(layer)) else None, trained)
            and not _is_kept(layer)
        ]
        return (*self._of(variables), *added)

    def _of(self, variables: Iterable[Any]) -> Iterator[OwnLoss]:
        kept = (variable for variable in variables if _has_strength(getattr(variable, "regularizer", None)))
        return map(self._penalty, kept)

    def _penalty(self, variable: Any) -> OwnLoss:
        if variable not in self._penalties:
            self._penalties[variable] = OwnLoss(_owner(variable))
        return self._penalties[variable]

    def _facts(self, step: str, losses: Iterable[OwnLoss]) -> UnreadLosses | None:
        unread = [loss for loss in losses if not loss.read]
        added = dict.fromkeys(loss.owner for loss in unread if loss.is_added)
        penalized = dict.fromkeys(loss.owner for loss in unread if not loss.is_added and not self._by_hand)
        return UnreadLosses(step, tuple(penalized), tuple(added)) if added or penalized else None

    def _adds(self, layer: Any, *_arguments: Any, **_options: Any) -> None:
        regularizer = getattr(layer, "activity_regularizer", None)
        if regularizer is not None and not _has_strength(regularizer):
            return
        if layer not in self._added:
            self._added[layer] = OwnLoss(layer.name, is_added=True)
        call = internals.global_state.get_global_attribute("current_call_ctx")
        if call is not None:  # the latest: a layer is also called when a model is put together
            self._roots[layer] = weakref.ref(call.entry_layer)

    def _reads(self, layer: Any) -> None:
        if not self._testing and layer in self._added:
            self._added[layer].read = True

    def _differentiates(self, _tape: Any, target: Any, *_arguments: Any, **_options: Any) -> None:
        """Take an added loss that a traced loss is computed from as read: the script got it in another way."""
        unread = [layer for layer, loss in self._added.items() if not loss.read]
        if not unread or not hasattr(target, "op"):  # the script is not in a graph
            return
        parts = _computed_from(target.op)
        for layer in unread:
            self._added[layer].read = any(getattr(loss, "op", None) in parts for loss in layer._losses)

    def _calls_regularizer(self, _regularizer: Any, weight: Any = None, *_arguments: Any, **_options: Any) -> None:
        if not self._reading and hasattr(weight, "regularizer"):  # and not what a layer computes
            self._by_hand = True

    def _tests(self, *_arguments: Any, **_options: Any) -> None:
        self._testing += 1

    def _tested(self, *_arguments: Any, **_options: Any) -> None:
        self._testing -= 1

    def _asks(self, layer: Any) -> None:
        self._reading += 1
        if not self._testing and layer not in self._asked:
            self._asked[layer] = None
            for variable in layer.trainable_weights:
                self._penalty(variable).read = True

    def _asked_for(self, _layer: Any) -> None:
        self._reading -= 1


def _trains(layer: Any, root: Any, trained: set[int]) -> bool:
    """Whether all weights that a loss added by a layer can depend on are trained.

    These are the layer's; if it has none, those of the smallest part of the model that has it inside. A part that
    is frozen, or not given to the optimizer, may be all that the loss depends on.
    """
    around = [] if root is None else [one for one in root._flatten_layers() if layer in one._flatten_layers()]
    for part in (layer, *reversed(around)):
        weights = [v for one in part._flatten_layers() for v in one._trainable_variables]
        if weights:
            return all(v.trainable and id(v) in trained for v in weights)
    return False


def _is_kept(layer: Any) -> bool:
    """Whether a layer has what it adds as an attribute, too, where the script may take it from."""
    return any(value is loss for loss in layer._losses for value in vars(layer).values())


def _computed_from(operation: Any) -> set[Any]:
    """Return an operation, and those that it is computed from."""
    waiting, seen = [operation], {operation}
    while waiting and len(seen) < OPERATIONS:
        further = {tensor.op for tensor in waiting.pop().inputs} - seen
        seen |= further
        waiting += further
    return seen


def _owner(variable: Any) -> str:
    """Return the name of the layer that a variable belongs to; of the variable, if it belongs to none."""
    return str([variable.name, *variable.path.split("/")[:-1]][-1])


def _has_strength(regularizer: Any) -> bool:
    """Whether a regularizer is there, and not one of strength 0."""
    if regularizer is None:
        return False
    strengths = [getattr(regularizer, name, None) for name in ("l1", "l2", "factor")]
    known = [strength for strength in strengths if strength is not None]
    return not known or any(float(strength) != 0 for strength in known)
