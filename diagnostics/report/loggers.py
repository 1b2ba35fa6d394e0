"""Sends what a watcher records to a function, TensorBoard, Weights & Biases or MLflow."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from diagnostics.errors import InvalidInput, message_of, what

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding
    from diagnostics.facts.over_time import FixedBatchFacts, Histogram, LayerHistograms, Look
    from diagnostics.facts.training import GradientHistory, TrainingHistory, UpdateHistory

Values = dict[str, float]
Rows = list[tuple[Values, int]]
"""What is known of some steps, each with its number, rising."""

ALERT_LEVELS = {"error": "ERROR", "warning": "WARN"}  # of Weights & Biases
LAYERS = ("watch_weights", "watch_gradients")  # histograms

Function = Callable[[Values, int], object]


class MetricLogger:
    """Logs every step once, one reading of the history at a time.

    Names are ``watch/loss``, ``watch/learning_rate`` (with a number appended where there are several
    parameter groups), ``watch/gradient_norm``, ``watch/evaluation_loss``, and for sampled steps
    ``watch_gradient_norm/LAYER``, ``watch_update_ratio/LAYER`` and ``watch_weight_norm/LAYER``. Unknown
    values are left out; NaN and inf are logged as they are. Of a fixed batch ``watch/fixed_batch_loss`` and a
    table ``watch/fixed_batch``, and histograms ``watch_weights/LAYER`` and ``watch_gradients/LAYER``, which a
    function is not given.

    Args:
        logger: a function of a dict and a step, a TensorBoard ``SummaryWriter``, a Weights & Biases run, or the
            module ``mlflow``.
        faults: receives the exception of a logger that fails. Nothing is logged after one.
    """

    def __init__(self, logger: Any, faults: dict[str, str]) -> None:
        kind = _kind(logger)
        assert kind is not None, "check_logger() comes first"
        self._faults = faults
        self._safely(self._open, kind, logger)
        self._step = -1
        self._evaluations = 0

    def _open(self, kind: Kind, logger: Any) -> None:
        self._sink = kind(logger)

    def take(self, history: Callable[[], TrainingHistory]) -> None:
        """Log the steps that are new since the last call."""
        self._safely(self._take, history)

    def look(self, look: Look | None, layers: LayerHistograms | None, batch: FixedBatchFacts | None) -> None:
        """Log what is new of the fixed batch and of the histograms."""
        self._safely(self._look, look, layers, batch)

    def end(self, findings: Callable[[], tuple[Finding, ...]]) -> None:
        """Log the findings."""
        self._safely(self._end, findings)

    def _take(self, known: Callable[[], TrainingHistory]) -> None:
        history = known()
        rows = _rows(history, self._step, self._evaluations)
        if rows:
            self._step = max(self._step, rows[-1][1])
            self._evaluations = 0 if history.evaluations is None else len(history.evaluations.steps)
            self._sink.write(rows)

    def _look(self, look: Look | None, layers: LayerHistograms | None, batch: FixedBatchFacts | None) -> None:
        if look is not None and batch is not None:
            self._sink.look(look, _table(look, batch))
        if layers is not None:
            named = {f"watch_weights/{name}": histogram for name, histogram in layers.weights.items()}
            named |= {f"watch_gradients/{name}": histogram for name, histogram in layers.gradients.items()}
            self._sink.histograms(named, layers.step)

    def _end(self, findings: Callable[[], tuple[Finding, ...]]) -> None:
        self._sink.findings(findings(), max(0, self._step))

    def _safely(self, work: Callable[..., None], *given: Any) -> None:
        if "logger" in self._faults:
            return
        try:
            work(*given)
        except Exception as fault:  # the logger's; training goes on
            self._faults["logger"] = f"logging stopped: {type(fault).__name__}: {message_of(fault)}"


def _rows(history: TrainingHistory, after: int, evaluations: int) -> Rows:
    rows: dict[int, Values] = {step: {} for step in history.steps.steps.tolist() if step > after}
    if history.losses is not None:
        for step, loss in zip(history.losses.steps.tolist(), history.losses.values.tolist(), strict=True):
            if step in rows:
                rows[step]["watch/loss"] = loss
    for step, rates in zip(history.steps.steps.tolist(), history.steps.learning_rates.tolist(), strict=True):
        for group, rate in enumerate(rates):
            if step in rows and not math.isnan(rate):
                rows[step]["watch/learning_rate" + (f"_{group}" if len(rates) > 1 else "")] = rate
    if history.gradients is not None:
        for step, norm in zip(history.gradients.steps.tolist(), history.gradients.norms.tolist(), strict=True):
            if step in rows:
                rows[step]["watch/gradient_norm"] = norm
    if history.updates is not None:
        for number, step in enumerate(history.updates.steps.tolist()):
            if step in rows:
                rows[step] |= _layers(history.updates, number, history.gradients)
    if history.evaluations is not None:
        at = history.evaluations.steps.tolist()[evaluations:]
        for step, loss in zip(at, history.evaluations.losses.tolist()[evaluations:], strict=True):
            rows.setdefault(step, {})["watch/evaluation_loss"] = loss
    return sorted(((values, step) for step, values in rows.items() if values), key=lambda row: row[1])


def _layers(updates: UpdateHistory, place: int, gradients: GradientHistory | None) -> Values:
    """Return the values of each layer in a sampled step."""
    values: Values = {}
    if gradients is not None:
        for norms in gradients.layer_norms[gradients.steps == updates.steps[place]]:
            values |= {
                f"watch_gradient_norm/{name}": float(n) for name, n in zip(gradients.layers, norms, strict=True)
            }
    measured = np.asarray(~np.isnan(updates.ratios).all(axis=0))
    for number, layer in enumerate(updates.layers):
        if measured[number]:
            values[f"watch_update_ratio/{layer}"] = float(updates.ratios[place, number])
        if measured[number] or not measured.any():
            values[f"watch_weight_norm/{layer}"] = float(updates.weight_norms[place, number])
    return values


Table = list[tuple[str, str, str]]
"""Input, target and prediction of each example."""

COLUMNS = ("input", "target", "prediction")


def _table(look: Look, batch: FixedBatchFacts) -> Table:
    targets = batch.targets or ("",) * len(batch.inputs)
    return list(zip(batch.inputs, targets, look.predictions, strict=True))


def _as_markdown(table: Table) -> str:
    def cell(text: str) -> str:
        return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())

    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in (COLUMNS, *table)]
    return "\n".join([lines[0], "|---|---|---|", *lines[1:]])


def _loss_of(look: Look) -> Values:
    return {} if look.loss is None else {"watch/fixed_batch_loss": look.loss}


class _ToFunction:
    """Calls ``logger(values, step)`` once a step; a finding is logged as 1.0 under its name."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def write(self, rows: Rows) -> None:
        for values, step in rows:
            self._function(values, step)

    def findings(self, findings: tuple[Finding, ...], step: int) -> None:
        if findings:
            self._function({f"watch_{f.severity}/{f.rule}": 1.0 for f in findings}, step)

    def look(self, look: Look, table: Table) -> None:
        if look.loss is not None:
            self._function(_loss_of(look), look.step)

    def histograms(self, named: dict[str, Histogram], step: int) -> None:
        """A function takes numbers only."""


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

    def look(self, look: Look, table: Table) -> None:
        self.write([(_loss_of(look), look.step)])
        self._writer.add_text("watch/fixed_batch", _as_markdown(table), look.step)

    def histograms(self, named: dict[str, Histogram], step: int) -> None:
        for name, one in named.items():
            self._writer.add_histogram_raw(
                name,
                min=float(one.edges[0]),
                max=float(one.edges[-1]),
                num=int(one.counts.sum()),
                sum=one.total,
                sum_squares=one.squares,
                bucket_limits=one.edges[1:].tolist(),
                bucket_counts=one.counts.tolist(),
                global_step=step,
            )


class _ToRun:
    """Logs one row of a Weights & Biases run for each reading: W&B wants no more than a few a second.

    A run accepts no row for a past step, and every step read here is past. So the step is logged as a value of its
    own, as W&B advises, and advances the run's counter only while nobody else does: otherwise the values join the
    current row, and no row of the user's is lost.
    """

    def __init__(self, run: Any) -> None:
        self._run = run
        self._counter = getattr(run, "step", None)
        run.define_metric("watch/step")
        for name in ("watch", "watch_gradient_norm", "watch_update_ratio", "watch_weight_norm", *LAYERS):
            run.define_metric(f"{name}/*", step_metric="watch/step")

    def write(self, rows: Rows) -> None:
        whole = (row for row in reversed(rows) if any(name.startswith("watch_") for name in row[0]))
        values, step = next(whole, rows[-1])
        self._log(values, step)

    def _log(self, values: dict[str, Any], step: int) -> None:
        alone = getattr(self._run, "step", None) == self._counter
        self._run.log({**values, "watch/step": step}, commit=alone)
        self._counter = getattr(self._run, "step", None)

    def look(self, look: Look, table: Table) -> None:
        values: dict[str, Any] = {**_loss_of(look)}
        if (wandb := sys.modules.get("wandb")) is not None:
            values["watch/fixed_batch"] = wandb.Table(columns=list(COLUMNS), data=[list(row) for row in table])
        self._log(values, look.step)

    def histograms(self, named: dict[str, Histogram], step: int) -> None:
        if (wandb := sys.modules.get("wandb")) is not None:
            as_lists = {name: (one.counts.tolist(), one.edges.tolist()) for name, one in named.items()}
            self._log({name: wandb.Histogram(np_histogram=both) for name, both in as_lists.items()}, step)

    def findings(self, findings: tuple[Finding, ...], step: int) -> None:
        self._run.summary["watch/findings"] = _text(findings)


class _ToMLflow:
    """Logs to the run that was active at the beginning: one request for each reading, not for each step.

    Tables and histograms are artifacts in the folder ``watch`` of the run.
    """

    MOST = 1000  # metrics in a request, as MLflow allows

    def __init__(self, mlflow: Any) -> None:
        self._client, self._metric = mlflow.MlflowClient(), mlflow.entities.Metric
        self._run_id = mlflow.active_run().info.run_id

    def write(self, rows: Rows) -> None:
        now = int(1000 * time.time())
        metrics = [self._metric(name, value, now, step) for values, step in rows for name, value in values.items()]
        for start in range(0, len(metrics), self.MOST):
            self._client.log_batch(self._run_id, metrics=metrics[start : start + self.MOST])

    def look(self, look: Look, table: Table) -> None:
        self.write([(_loss_of(look), look.step)])
        self._client.log_text(self._run_id, _as_markdown(table), f"watch/fixed_batch/step_{look.step}.md")

    def histograms(self, named: dict[str, Histogram], step: int) -> None:
        content = {name: {"edges": h.edges.tolist(), "counts": h.counts.tolist()} for name, h in named.items()}
        self._client.log_dict(self._run_id, content, f"watch/histograms/step_{step}.json")

    def findings(self, findings: tuple[Finding, ...], step: int) -> None:
        self._client.log_text(self._run_id, _text(findings), "watch/findings.txt")


class Alerts:
    """Sends findings, each once, to the run of Weights & Biases and of MLflow that the program has active.

    Neither is imported, and no run is begun.

    Attributes:
        fault: the failure of a tracker, after which nothing more is sent; empty until then.
    """

    def __init__(self) -> None:
        """Send nothing yet."""
        self._sent: set[tuple[str, str]] = set()
        self.fault = ""

    def send(self, findings: Iterable[Finding]) -> None:
        """Send errors and warnings that are new."""
        if not self.fault:
            try:
                self._send(findings)
            except Exception as fault:  # the tracker's; its server may take minutes to fail
                self.fault = f"alerts ended: {type(fault).__name__}: {message_of(fault)}"

    def _send(self, findings: Iterable[Finding]) -> None:
        wandb, mlflow = sys.modules.get("wandb"), sys.modules.get("mlflow")
        run, active = getattr(wandb, "run", None), getattr(mlflow, "active_run", lambda: None)()
        for finding in findings:
            name, level = f"{finding.severity}: {finding.rule}", ALERT_LEVELS.get(finding.severity)
            if level is None:
                continue
            if run is not None and ("wandb", name) not in self._sent:
                self._sent.add(("wandb", name))
                run.alert(title=name, text=f"{finding.message}\n\nfix: {finding.fix}", level=level)
            if active is not None and ("mlflow", name) not in self._sent:
                self._sent.add(("mlflow", name))
                mlflow.MlflowClient().set_tag(  # type: ignore[union-attr]
                    active.info.run_id, f"diagnostics.{finding.rule}", f"{finding.severity}: {finding.message}"
                )


Kind = type[_ToFunction] | type[_ToTensorBoard] | type[_ToRun] | type[_ToMLflow]


def _text(findings: tuple[Finding, ...]) -> str:
    return (
        "\n\n".join(f"{f.severity}: {f.rule}\n\n{f.message}\n\nfix: {f.fix}" for f in findings) or "Nothing found."
    )


def check_logger(name: str, logger: Any) -> None:
    """Refuse what is neither None nor a logger.

    Args:
        name: the function or class that was called, for the message.
        logger: what it was given.

    Raises:
        InvalidInput: `logger` is of no known kind.
    """
    if logger is not None and _kind(logger) is None:
        raise InvalidInput(
            f"{name}() was given {what(logger)} as logger. It takes a function of a dict and a step, a "
            "TensorBoard SummaryWriter, a Weights & Biases run, or the module mlflow."
        )
    if logger is not None and _kind(logger) is _ToMLflow and logger.active_run() is None:
        raise InvalidInput(
            f"{name}() was given mlflow as logger, and no run of it is active. Begin one before: "
            "mlflow.start_run()."
        )


def _kind(logger: Any) -> Kind | None:
    """Recognise a logger by its methods, so that no logging package need be installed."""
    if isinstance(logger, type):
        return None
    if hasattr(logger, "add_scalar"):
        return _ToTensorBoard
    if hasattr(logger, "log") and hasattr(logger, "define_metric"):
        return _ToRun
    if hasattr(logger, "MlflowClient") and hasattr(logger, "active_run"):
        return _ToMLflow
    return _ToFunction if callable(logger) else None
