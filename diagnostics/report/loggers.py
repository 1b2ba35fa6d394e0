"""Hands what a watcher reads on to what people already log with: a function, TensorBoard, Weights & Biases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from diagnostics.errors import InvalidInput, message_of, what

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding
    from diagnostics.facts.training import HistoryFacts

Values = dict[str, float]
Rows = list[tuple[Values, int]]
"""What is known of some steps, each with its number, rising."""

Function = Callable[[Values, int], object]


class MetricLogger:
    """Gives every step to a logger once, a whole reading at a time.

    Names are ``watch/loss``, ``watch/learning_rate`` (with a number behind it where there are several parameter
    groups), ``watch/gradient_norm``, ``watch/evaluation_loss``, and for the steps that are looked at more closely
    ``watch_gradient_norm/LAYER``, ``watch_update_ratio/LAYER`` and ``watch_weight_norm/LAYER``. What is not known
    is left out; NaN and inf are handed over as what they are.

    Args:
        logger: a function of a dict and a step, a TensorBoard ``SummaryWriter``, or a Weights & Biases run.
        faults: where a fault of the logger is written down. Nothing is handed over after one.
    """

    def __init__(self, logger: Any, faults: dict[str, str]) -> None:
        kind = _kind(logger)
        assert kind is not None, "check_logger() comes first"
        self._faults = faults
        self._safely(self._open, kind, logger)
        self._step = -1
        self._evaluations = 0

    def _open(self, kind: type[_ToFunction | _ToTensorBoard | _ToRun], logger: Any) -> None:
        self._sink = kind(logger)

    def take(self, history: Callable[[], HistoryFacts]) -> None:
        """Hand over the steps that were not handed over before."""
        self._safely(self._take, history)

    def end(self, findings: Callable[[], tuple[Finding, ...]]) -> None:
        """Hand over what was found."""
        self._safely(self._end, findings)

    def _take(self, known: Callable[[], HistoryFacts]) -> None:
        history = known()
        rows = _rows(history, self._step, self._evaluations)
        if rows:
            self._step = max(self._step, rows[-1][1])
            self._evaluations = 0 if history.evaluation_steps is None else len(history.evaluation_steps)
            self._sink.write(rows)

    def _end(self, findings: Callable[[], tuple[Finding, ...]]) -> None:
        self._sink.findings(findings(), max(0, self._step))

    def _safely(self, work: Callable[..., None], *given: Any) -> None:
        if "logger" in self._faults:
            return
        try:
            work(*given)
        except Exception as fault:  # the logger's, and none of training
            self._faults["logger"] = (
                f"handing over to the logger ended: {type(fault).__name__}: {message_of(fault)}"
            )


def _rows(history: HistoryFacts, after: int, evaluations: int) -> Rows:
    rows: dict[int, Values] = {}
    for place in np.flatnonzero(history.steps > after):
        values: Values = {}
        if history.losses is not None and history.loss_known is not None and history.loss_known[place]:
            values["watch/loss"] = float(history.losses[place])
        rates = history.learning_rates[place]
        for group, rate in enumerate(rates):
            if not math.isnan(rate):
                values["watch/learning_rate" + (f"_{group}" if len(rates) > 1 else "")] = float(rate)
        if history.gradient_known[place]:
            values["watch/gradient_norm"] = float(history.gradient_norms[place])
        rows[int(history.steps[place])] = values
    sampled = [] if history.sampled_steps is None else history.sampled_steps.tolist()
    for number, step in enumerate(sampled):
        if step in rows:
            rows[step] |= _layers(history, number, step)
    if history.evaluation_steps is not None and history.evaluation_losses is not None:
        at = history.evaluation_steps.tolist()[evaluations:]
        for step, loss in zip(at, history.evaluation_losses.tolist()[evaluations:], strict=True):
            rows.setdefault(step, {})["watch/evaluation_loss"] = loss
    return sorted(((values, step) for step, values in rows.items() if values), key=lambda row: row[1])


def _layers(history: HistoryFacts, place: int, step: int) -> Values:
    """Return what is known of each layer in a step that was looked at more closely."""
    at = np.flatnonzero(history.steps == step)
    norms = history.layer_gradient_norms[at[0]] if len(at) and history.gradient_known[at[0]] else None
    seen = {
        "watch_gradient_norm": norms,
        "watch_update_ratio": None if history.update_ratios is None else history.update_ratios[place],
        "watch_weight_norm": None if history.weight_norms is None else history.weight_norms[place],
    }
    measured = history.update_ratios is None or ~np.isnan(history.update_ratios).all(axis=0)
    kept = np.broadcast_to(measured, len(history.layers))
    return {
        f"{name}/{layer}": float(values[number])
        for name, values in seen.items()
        if values is not None
        for number, layer in enumerate(history.layers)
        if kept[number] or name == "watch_gradient_norm"
    }


class _ToFunction:
    """Calls ``logger(values, step)`` once a step; a finding is the number 1 under its name, as all values are."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def write(self, rows: Rows) -> None:
        for values, step in rows:
            self._function(values, step)

    def findings(self, findings: tuple[Finding, ...], step: int) -> None:
        if findings:
            self._function({f"watch_{f.severity}/{f.rule}": 1.0 for f in findings}, step)


class _ToTensorBoard:
    """Calls ``add_scalar(tag, scalar_value, global_step)``, and ``add_text`` for the findings."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, rows: Rows) -> None:
        for values, step in rows:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def findings(self, findings: tuple[Finding, ...], step: int) -> None:
        self._writer.add_text("watch/findings", _text(findings), step)
        self._writer.flush()


class _ToRun:
    """Logs one row of a Weights & Biases run for each reading: it wants no more than a few a second.

    A run takes no row for a step that is past, and what is read here is past. So the step goes along as a value of
    its own, as W&B advises, and moves the run's own counter only while nobody else does: otherwise the values join
    the row that is under way, and no row of the user's is lost.
    """

    def __init__(self, run: Any) -> None:
        self._run = run
        self._counter = getattr(run, "step", None)
        run.define_metric("watch/step")
        for name in ("watch", "watch_gradient_norm", "watch_update_ratio", "watch_weight_norm"):
            run.define_metric(f"{name}/*", step_metric="watch/step")

    def write(self, rows: Rows) -> None:
        whole = (row for row in reversed(rows) if any(name.startswith("watch_") for name in row[0]))
        values, step = next(whole, rows[-1])
        alone = getattr(self._run, "step", None) == self._counter
        self._run.log({**values, "watch/step": step}, commit=alone)
        self._counter = getattr(self._run, "step", None)

    def findings(self, findings: tuple[Finding, ...], step: int) -> None:
        self._run.summary["watch/findings"] = _text(findings)


def _text(findings: tuple[Finding, ...]) -> str:
    return (
        "\n\n".join(f"{f.severity}: {f.rule}\n\n{f.message}\n\nfix: {f.fix}" for f in findings) or "Nothing found."
    )


def check_logger(name: str, logger: Any) -> None:
    """Refuse what is neither None nor a logger; `name` is that of the function or class that was called."""
    if logger is not None and _kind(logger) is None:
        raise InvalidInput(
            f"{name}() was given {what(logger)} as logger. It takes a function of a dict and a step, a "
            "TensorBoard SummaryWriter, or a Weights & Biases run."
        )


def _kind(logger: Any) -> type[_ToFunction | _ToTensorBoard | _ToRun] | None:
    """Recognise a logger by its methods: its package need not be installed to look at something else."""
    if isinstance(logger, type):
        return None
    if hasattr(logger, "add_scalar"):
        return _ToTensorBoard
    if hasattr(logger, "log") and hasattr(logger, "define_metric"):
        return _ToRun
    return _ToFunction if callable(logger) else None
