"""Examines and watches each call of a framework's method that trains."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.errors import InvalidInput

from .training import Training, Trainings, not_examined

if TYPE_CHECKING:
    from diagnostics.collectors.shared.pipeline import Pipeline

OFTEN = 4  # trainings of one model that are watched; to begin takes a second, and some call `fit` for each step

# Who watches, arguments and options to call a method with, and what to do at its end.
Joined = tuple[Any, Any, Any, Callable[[], object]]


class Framework(Protocol):
    """What observes the calls of one framework. `arguments` and `options` are those of the call."""

    def pipeline(self, *arguments: Any, **options: Any) -> Pipeline | None:
        """Return what to examine before the training; None if that must wait for its first batch."""

    def join(self, training: Training, train: Any, arguments: Any, options: Any) -> Joined:
        """Watch the training with a callback; `train`: the original method."""

    def keep(self, training: Training, target: Any, pipeline: Any) -> None:
        """Keep what the second look needs of an examined training."""


class TrainCalls:
    """Observes the methods that train.

    A trainer or model that is trained repeatedly is examined once, and watched the first few times.

    Args:
        trainings: each call is added here.
        patches: hold the replaced methods.
        suspended: each returns a context in which a finder of custom loops looks away: the loop within the method
            is the framework's, and none of the script's own.
    """

    def __init__(
        self,
        trainings: Trainings,
        patches: Patches,
        suspended: tuple[Callable[[], contextlib.AbstractContextManager[None]], ...],
    ) -> None:
        self._trainings, self._patches, self._suspended = trainings, patches, suspended
        self._times: IdentityMap[Any, int] = IdentityMap()  # that each was trained

    def has_trained(self, target: Any) -> bool:
        """Whether a trainer or model was trained by one of the methods."""
        return target in self._times

    def observe(self, owner: Any, method: str, framework: Framework) -> None:
        """Have each call of a method that trains examined first, and watched."""
        calls = self

        def make(train: Callable[..., Any]) -> Callable[..., Any]:
            def observed(*arguments: Any, **options: Any) -> Any:
                times = calls._times[arguments[0]] = calls._times.get(arguments[0], 0) + 1
                with contextlib.ExitStack() as until_it_ends:
                    for suspended in calls._suspended:
                        until_it_ends.enter_context(suspended())
                    if times > OFTEN:
                        return train(*arguments, **options)
                    training = calls._trainings.begin(Training())
                    if times == 1:
                        calls._examine(training, framework, arguments, options)
                    joined = calls._trainings.guard.attempt(framework.join, training, train, arguments, options)
                    if joined is not None:
                        training.watching, arguments, options, leave = joined
                        until_it_ends.callback(leave)
                    return train(*arguments, **options)

            return observed

        self._patches.around(owner, method, make)

    def _examine(self, training: Training, framework: Framework, arguments: Any, options: Any) -> None:
        from diagnostics.api.walk import Walk

        try:
            pipeline = framework.pipeline(*arguments, **options)
            if pipeline is None:
                training.awaits_batch = True
                return
            walk = Walk(pipeline)
            self._trainings.examined(training, walk.report())
            training.walk = walk if pipeline.awaits_end else None
            training.awaits_batch = getattr(pipeline, "awaits_weights", False)
            with own_run(), pipeline.untouched():
                training.rows = pipeline.kept_rows()
            framework.keep(training, arguments[0], pipeline)
        except InvalidInput as reason:  # it trains in a way that cannot be examined
            training.examined = not_examined(arguments[0], str(reason))
        except Exception as fault:
            self._trainings.fault(fault)
