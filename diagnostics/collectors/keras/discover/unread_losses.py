"""Finds losses of a model's own layers that a step of the user's own never asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.calls import UnreadLosses
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import Unsubscribe, subscribe


@dataclass
class Penalty:
    """Of one variable.

    Attributes:
        owner: the name of its layer.
        read: whether the script has asked for it.
    """

    owner: str
    read: bool = False


class LayerLosses:
    """Remembers which layers add a loss, and whose `losses` are read, other than in an evaluation.

    Args:
        guard: runs the work.
    """

    def __init__(self, guard: FaultGuard) -> None:
        self._guard = guard
        self._added: IdentityMap[Any, None] = IdentityMap()  # layers that have called `add_loss`
        self._read: IdentityMap[Any, None] = IdentityMap()  # layers whose own losses were read
        self._asked: IdentityMap[Any, None] = IdentityMap()  # layers and models with all inside that were asked
        self._penalties: IdentityMap[Any, Penalty] = IdentityMap()  # by variable
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
        )

    def listen_to_tests(self) -> Unsubscribe:
        """Within a `test_step`, let reading count for nothing; return what ends it."""
        return subscribe(
            self._guard.attempt, (taps.test_step.before, self._tests), (taps.test_step.ended, self._tested)
        )

    def of_model(self, model: Any) -> UnreadLosses | None:
        """Return what nobody has read of a model whose train_step is the user's own; None if nothing."""
        layers = model._flatten_layers()
        added = [layer.name for layer in layers if layer in self._added and layer not in self._read]
        return self._facts("train_step", self.penalties(model.trainable_variables), added)

    def of_loop(self, penalties: Iterable[Penalty]) -> UnreadLosses | None:
        """Return what nobody has read of the variables of a loop; None if nothing."""
        return self._facts("loop", penalties, [])

    def penalties(self, variables: Iterable[Any]) -> tuple[Penalty, ...]:
        """Return those of variables, which know later whether they were read, and keep no variable alive."""
        kept = (variable for variable in variables if _has_strength(getattr(variable, "regularizer", None)))
        return tuple(map(self._penalty, kept))

    def _penalty(self, variable: Any) -> Penalty:
        if variable not in self._penalties:
            self._penalties[variable] = Penalty(_owner(variable))
        return self._penalties[variable]

    def _facts(self, step: str, penalties: Iterable[Penalty], added: list[str]) -> UnreadLosses | None:
        penalized = [] if self._by_hand else [penalty.owner for penalty in penalties if not penalty.read]
        if not added and not penalized:
            return None
        return UnreadLosses(step, tuple(dict.fromkeys(penalized)), tuple(dict.fromkeys(added)))

    def _adds(self, layer: Any, *_arguments: Any, **_options: Any) -> None:
        self._added[layer] = None

    def _reads(self, layer: Any) -> None:
        if not self._testing:
            self._read[layer] = None

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
