"""`GradientChecks`: checks of a model's gradients, for tests."""

from __future__ import annotations

import difflib
import fnmatch
import math
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from diagnostics.collectors.checks.accumulation import accumulation_facts
from diagnostics.collectors.checks.cases import Axes, read_axes
from diagnostics.errors import InvalidInput, ends_at_the_caller, what
from diagnostics.facts.checks import (
    FADED,
    AccumulationFacts,
    ParameterGradient,
    PositionGradients,
)
from diagnostics.text.join import count_of, listed
from diagnostics.text.names import describe_parameters

from .positions import PositionProfile
from .result import CheckResult, Checks, handed

__tracebackhide__ = ends_at_the_caller

LENGTHS = (8, 16, 32)  # of sequences
# Two orders of adding up float32 differ by 1e-7 to 1e-5 of the gradient's norm; a wrong scale by a half and more.
REL_TOLERANCE = 1e-3
HALF_PRECISION = 2.0**-20  # rounding errors above this are those of float16 and bfloat16, which add up coarsely
ALONG = 0.999  # cosine of gradients that differ in scale alone
EXPLODED = 1e6  # times the gradient at the end: a step along it destroys what the end has taught


class GradientChecks(Checks):
    """Checks of a model's gradients, for tests; also available as the fixture `gradient_checks`.

        def test_gradients(gradient_checks):
            gradient_checks.every_parameter(model, batch, loss_fn, except_for=["encoder.pooler.*"])
            gradient_checks.accumulation(model, batch, loss_fn, parts=4)
            print(gradient_checks.through_time(model, "4 time 16", lengths=(8, 32, 128)))

    Each check runs a copy of the model. If it passes, it returns what it measured and prints nothing; if it fails,
    it raises `CheckFailed`, an AssertionError.
    """

    def every_parameter(
        self, model: Any, batch: Any, loss_fn: Any = None, *, except_for: Collection[str] = ()
    ) -> CheckResult:
        """Check that every trainable parameter gets a gradient that is finite and not 0.

        A parameter whose first gradient is 0 gets two more steps, because it may precede a layer that starts at 0
        (LoRA, a residual branch). Frozen parameters are left out.

        Args:
            model: a `torch.nn.Module`, or a compiled Keras model on TensorFlow.
            batch: a training batch: ``(inputs, target)``, a dict, or for Keras ``(x, y, sample_weight)``.
            loss_fn: called with ``(output of the model, target)``; None for Keras, or if the model returns its
                loss.
            except_for: names of parameters that need no gradient; ``*`` matches any text.

        Raises:
            CheckFailed: some parameters get none; the message names them.
            InvalidInput: an argument is wrong, or the model cannot be run on the batch.
        """
        name = "every parameter"
        source = _source(model, batch, loss_fn, "every_parameter")
        known = source.parameter_names()
        if not known:
            raise InvalidInput("every_parameter() was given a model without trainable parameters: all are frozen.")
        _check_patterns(except_for, known)
        with source.untouched():
            found = source.step()
        kept = [one for one in found if not any(fnmatch.fnmatchcase(one.name, pattern) for pattern in except_for)]
        infinite = [one for one in kept if one.norm is not None and not math.isfinite(one.norm)]
        if infinite:
            return self._failed(
                name,
                f"the gradient of {_names(infinite, kept)} is NaN or infinite ({len(infinite)} of {len(kept)} "
                "parameters). One step would make these weights NaN.",
                "look for a division by 0, a log or a square root of 0, or an overflow in half precision in the "
                "forward pass of this batch; torch.autograd.set_detect_anomaly(True) names the operation",
                "non-finite-gradients",
                {"parameters": [one.name for one in infinite]},
            )
        missing = [one for one in kept if not one.reached]
        if missing:
            none = [one for one in missing if one.norm is None]
            zero = [one for one in missing if one.norm is not None]
            words = [f"{_names(none, kept)} without any gradient"] if none else []
            words += [f"{_names(zero, kept)} with a gradient of exactly 0 in every step"] if zero else []
            return self._failed(
                name,
                f"{len(missing)} of {count_of(len(kept), 'trainable parameter')} would never change: "
                f"{listed(words)}.",
                _missing_fix(none, zero),
                "unreached-parameters" if len(missing) < len(kept) else "no-gradient",
                {"without": [one.name for one in none], "zero": [one.name for one in zero]},
            )
        norms = [one.norm or one.later for one in kept]
        late = sum(not one.norm for one in kept)
        also = f"; {late} of them from the second step on" if late else ""
        return self._passed(
            name,
            f"{count_of(len(kept), 'parameter')} with norms from {min(norms):.3g} to {max(norms):.3g}{also}",
            smallest=min(norms),
            largest=max(norms),
        )

    def accumulation(
        self,
        model: Any,
        batch: Any,
        loss_fn: Any = None,
        *,
        parts: int = 4,
        accumulate: Callable[[Any, list[Any]], object] | None = None,
        batch_statistics: bool = True,
    ) -> CheckResult:
        """Check that gradients accumulated over micro-batches equal the gradient of the whole batch.

            def accumulate(model, micro_batches):  # as in your loop, without the optimizer's step
                for inputs, target in micro_batches:
                    (loss_fn(model(inputs), target) / len(micro_batches)).backward()

        Dropout is off in both cases, because it would draw different numbers.

        Args:
            model: see `every_parameter`.
            batch: at least `parts` rows.
            loss_fn: see `every_parameter`.
            parts: number of micro-batches.
            accumulate: your own accumulation, called with a copy of the model and the micro-batches; None for the
                mean of their losses, weighted by their rows.
            batch_statistics: False to let batch norm use its running statistics, if the model is to be accumulated
                despite batch norm.

        Raises:
            CheckFailed: the gradients differ; the message gives their ratio.
            InvalidInput: an argument is wrong, or the model cannot be run on the batch.
        """
        name = "accumulation"
        source = _source(model, batch, loss_fn, "accumulation")
        rows = source.rows()
        if isinstance(parts, bool) or not isinstance(parts, int) or not 2 <= parts <= max(rows, 1):
            raise InvalidInput(
                f"accumulation(parts={parts!r}): expected a whole number from 2 to the rows of the batch, {rows}."
            )
        if accumulate is not None and not callable(accumulate):
            raise InvalidInput(
                f"accumulation() was given {what(accumulate)} as accumulate. It takes a function of a model and a "
                "list of micro-batches."
            )
        with source.untouched():
            facts = accumulation_facts(source.parts(parts, batch_statistics), accumulate)
        numbers = {"ratio": facts.ratio, "cosine": facts.cosine, "difference": facts.difference}
        told = (
            f"the gradient of {parts} micro-batches is {facts.ratio:.4g} times that of the whole batch, and "
            f"differs from it by {facts.difference:.2g} of its norm"
        )
        if facts.difference <= _allowed(facts):
            return self._passed(name, told, **numbers)
        message, fix = _accumulation_words(facts, told, parts)
        return self._failed(name, message, fix, None, numbers)

    def through_time(
        self,
        model: Any,
        inputs: str | Callable[[int], Any],
        *,
        lengths: Sequence[int] = LENGTHS,
        at_least: float = FADED,
        output: Callable[[Any], Any] | None = None,
    ) -> PositionProfile:
        """Check that the last prediction's gradient reaches the first position, in sequences of increasing length.

        Args:
            model: a `torch.nn.Module`, or a Keras model on TensorFlow.
            inputs: the axes of a synthetic input, where the only name is the axis that grows: ``"4 time 16"`` for
                4 rows of 16 features, ``"4 time < 100"`` for token ids; or a function that makes an input of a
                given length.
            lengths: the lengths to try; pass those that your task needs.
            at_least: the smallest accepted gradient at the first position, as a share of the largest. The default
                is float32's rounding error, 1.2e-07: smaller gradients are lost when those of all positions are
                added up.
            output: selects the prediction from the model's output; None for the last position, or the whole
                output.

        Returns:
            The gradient by position; `print` and `save("profile.html")` draw it.

        Raises:
            CheckFailed: at some length, the gradient vanishes or explodes on its way to the first position.
            InvalidInput: an argument is wrong, or the model cannot be run on the input.
        """
        if isinstance(at_least, bool) or not isinstance(at_least, int | float) or not 0 <= at_least < 1:
            raise InvalidInput(f"through_time(at_least={at_least!r}): expected a share, from 0 to below 1.")
        sizes = _checked_lengths(lengths)
        make = _input_maker(inputs)
        source = _positions(model, output)
        with source.untouched():
            rng = np.random.default_rng(0)
            profiles = {
                length: source.profile(
                    source.of_array(make.array({make.names_grown: length}, rng))
                    if isinstance(make, _Named)
                    else make(length),
                    length,
                )
                for length in sizes
            }
        found = PositionProfile(PositionGradients(profiles), at_least, EXPLODED)
        handed(found.result(), self._record)
        return found


class _Named:
    """Axes of which the only name grows."""

    def __init__(self, axes: Axes, name: str) -> None:
        self.names_grown = name
        self.array = axes.array


def _source(model: Any, batch: Any, loss_fn: Any, check: str) -> Any:
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    if torch is not None and isinstance(model, torch.nn.Module):
        from diagnostics.collectors.pytorch.checks.gradients import TorchGradients

        if loss_fn is not None and not callable(loss_fn):
            raise InvalidInput(f"{check}() was given {what(loss_fn)} as loss_fn. It takes a function.")
        return TorchGradients(model, batch, loss_fn)
    if keras is not None and isinstance(model, keras.Model):
        from diagnostics.collectors.keras.checks.gradients import KerasGradients

        if loss_fn is not None:
            raise InvalidInput(f"{check}() was given a loss_fn; a Keras model is compiled with its loss.")
        return KerasGradients(model, batch)
    raise InvalidInput(
        f"{check}() was given {what(model)} as model. It takes a torch.nn.Module, or a Keras model on TensorFlow."
    )


def _positions(model: Any, output: Any) -> Any:
    if output is not None and not callable(output):
        raise InvalidInput(f"through_time() was given {what(output)} as output. It takes a function.")
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    if torch is not None and isinstance(model, torch.nn.Module):
        from diagnostics.collectors.pytorch.checks.positions import TorchPositions

        return TorchPositions(model, output)
    if keras is not None and isinstance(model, keras.Model):
        from diagnostics.collectors.keras.checks.gradients import KerasPositions

        return KerasPositions(model, output)
    raise InvalidInput(
        f"through_time() was given {what(model)} as model. It takes a torch.nn.Module, or a Keras model on "
        "TensorFlow."
    )


def _input_maker(inputs: Any) -> Any:
    if callable(inputs):
        return inputs
    if not isinstance(inputs, str):
        raise InvalidInput(
            f"through_time() was given {what(inputs)} as inputs. It takes the axes of a synthetic input, such as "
            '"4 time 16" for 4 rows of 16 features, or a function that makes one for a length.'
        )
    axes = read_axes(inputs, "The input of through_time()")
    names = [name for name in axes.names if not name.isdigit()]
    if len(names) != 1 or axes.names.index(names[0]) != 1:
        raise InvalidInput(
            f"through_time() was given the axes {inputs!r}. One axis grows, the second, and is named; the others "
            "are "
            'numbers: "4 time 16".'
        )
    return _Named(axes, names[0])


def _checked_lengths(lengths: Any) -> list[int]:
    good = isinstance(lengths, list | tuple | range) and len(lengths) > 0
    if not good or any(isinstance(n, bool) or not isinstance(n, int) or n < 2 for n in lengths):
        raise InvalidInput(f"through_time(lengths={lengths!r}): expected whole numbers, each at least 2.")
    return sorted(set(lengths))


def _check_patterns(patterns: Any, known: Sequence[str]) -> None:
    if isinstance(patterns, str):
        raise InvalidInput(f"every_parameter(except_for={patterns!r}): expected a list of names.")
    for pattern in patterns:
        if not fnmatch.filter(known, str(pattern)):
            near = difflib.get_close_matches(str(pattern), known, 1, 0.0)
            raise InvalidInput(
                f"every_parameter(except_for=...) names {pattern!r}, and no trainable parameter is called that; "
                f"the nearest is {near[0]!r}. A * stands for any text: encoder.*"
            )


def _names(some: Sequence[ParameterGradient], of: Sequence[ParameterGradient]) -> str:
    chosen = {one.name for one in some}
    return describe_parameters({one.name: one.size for one in some}, [o.name for o in of if o.name not in chosen])


def _missing_fix(none: Sequence[ParameterGradient], zero: Sequence[ParameterGradient]) -> str:
    fixes = []
    if none:
        fixes.append(
            "use these layers in forward, and look for .detach(), .data, .item(), argmax or no_grad() behind them"
        )
    if zero:
        fixes.append(
            "look for units that are all off (ReLU with a large negative bias), a result multiplied by 0, or a "
            "bias in front of a layer that subtracts the mean, which has no effect (bias=False)"
        )
    return "; ".join([*fixes, "name in except_for what needs no gradient, or freeze it"])


def _allowed(facts: AccumulationFacts) -> float:
    """Return by which share two gradients may differ: half precision adds up coarsely."""
    return REL_TOLERANCE if facts.rounding < HALF_PRECISION else max(REL_TOLERANCE, 32 * facts.rounding)


def _accumulation_words(facts: AccumulationFacts, told: str, parts: int) -> tuple[str, str]:
    """Say why the gradients differ, and what to change."""
    allowed = _allowed(facts)
    sizes = " or ".join(map(str, dict.fromkeys(facts.sizes)))
    if facts.cosine >= ALONG and abs(facts.ratio / parts - 1) < 0.01:
        return (
            f"{told}: {parts} times too large. The losses of the micro-batches are added up, not averaged, which "
            f"is as a learning rate {parts} times as large.",
            "divide each loss by the number of micro-batches before backward()",
        )
    if facts.cosine >= ALONG and abs(facts.ratio * parts - 1) < 0.01:
        return (
            f"{told}: {parts} times too small. The loss adds up over rows (reduction='sum'), or is divided twice.",
            "divide by the number of micro-batches once if the loss is a mean, and not at all if it is a sum",
        )
    if facts.last_alone is not None and facts.last_alone <= allowed:
        return (
            f"{told}: it is the gradient of the last micro-batch alone. Gradients are zeroed between the "
            "micro-batches.",
            "call zero_grad() once for each optimizer.step(), before the first micro-batch",
        )
    if facts.by_labels is not None and facts.by_labels <= allowed < facts.difference:
        return (
            f"{told}. The micro-batches have {listed(facts.labels or ())} labels that count, and each counts the "
            "same: a label weighs more where there are few. Weighed by their labels, the difference is "
            f"{facts.by_labels:.2g}.",
            "use reduction='sum', and divide by the number of labels in all micro-batches together (a Trainer: "
            "num_items_in_batch)",
        )
    if facts.still is not None and facts.still <= allowed:
        return (
            f"{told}. Batch norm is the reason: it normalises {sizes} rows at a time in place of "
            f"{sum(facts.sizes)}; on its running statistics the difference is {facts.still:.2g}.",
            "use group norm or layer norm, or larger micro-batches; batch_statistics=False accepts it",
        )
    return (
        f"{told} (cosine {facts.cosine:.4f}; {facts.worst} differs most). The loss of a row depends on which "
        "other rows are in its batch, or the loss is no mean over rows.",
        "look for losses over pairs of rows (contrastive, in-batch negatives), statistics over the batch, and "
        "means weighted by tokens or classes; such a loss has to be computed over the whole batch",
    )
