"""Recognises CUDA's messages about failed work on a device, and narrows down which work failed.

A simulated device that uses CUDA's words, with "simulated" among them, is recognised likewise.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from diagnostics.collectors.shared.arrays import (
    LABEL_NAMES,
    configured_classes,
    is_tensor,
    outputs_setting,
    to_array,
)
from diagnostics.collectors.tracebacks.unknown_errors import of_packages
from diagnostics.facts.array import Array
from diagnostics.facts.crash import AsynchronousErrorCrash, FrameFacts, Symptom
from diagnostics.facts.crash.data import LabelBeyondOutputs, NotProbabilities, TokenBeyondEmbedding
from diagnostics.facts.pipeline import OUTPUTS_SETTING

from .frames import Crash, Recognisers
from .live.expression import path_to
from .messages.table import Found, find

RECOGNISERS = Recognisers()

_ASSERTION = re.compile(
    r"(?:\.cuh?:\d+: (?P<kernel>.{1,400}?): block: \[[\d,]+\], )?thread: \[[\d,]+\] "
    r"Assertion `?(?P<check>[^`\n]{3,400}?)`? failed"
)
_CHECKED: dict[type[NotProbabilities | LabelBeyondOutputs | TokenBeyondEmbedding], re.Pattern[str]] = {
    NotProbabilities: re.compile(r"input_val >= zero && inp"),
    LabelBeyondOutputs: re.compile(r"\bn_classes\b|cur_target"),
    TokenBeyondEmbedding: re.compile(r"srcIndex < srcSelectDimSize|vectorized gather kernel index out of bounds"),
}
"""The kernels' checks that have one cause."""

DATASETS_READ = 4  # each may take seconds
MOST_LINES = 12  # a step with more calls than that is not narrowed down by listing them


@RECOGNISERS.reading("device-failure")
def _asynchronous_error(crash: Crash, found: Found) -> AsynchronousErrorCrash:
    facts, kind = crash.facts, found.kind
    kernel, check = _assertion(crash.log) if kind == "assert" else (None, None)
    return AsynchronousErrorCrash(
        kind=kind,
        said=found[0],
        surfaced=next((frame for frame in reversed(facts.frames) if frame.yours), None),
        candidates=candidates(facts.frames) if facts.live else (),
        blocking=os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0")
        if facts.live
        else of_packages("set_to_block").search(crash.log) is not None or None,
        kernel=kernel,
        assertion=check,
        simulated="simulated" in facts.message.lower(),
    )


def _assertion(log: str) -> tuple[str | None, str | None]:
    """Read the kernel and its failed assertion from what the device printed; the first one counts."""
    found = _ASSERTION.search(log)
    return (None, None) if found is None else (found["kernel"], " ".join(found["check"].split()))


@RECOGNISERS.asked
def _failed_check(crash: Crash) -> Symptom | None:
    """Say what the check of a kernel that failed was about: by the check, or by what the host still knows."""
    found = find(crash.facts.message, "device-failure")
    of_device = found is not None and found.kind == "assert"
    _, check = _assertion(f"{crash.log}\n{crash.facts.message}" if of_device else crash.facts.message)
    cause = None if check is None else next((cause for cause in _CHECKED if _CHECKED[cause].search(check)), None)
    if cause is not None:
        return cause()
    if not of_device:
        said = "device-side assert triggered"
        return None if check is None else AsynchronousErrorCrash("assert", said, assertion=check)
    return None if check is not None else _labels_beyond_outputs(crash) or _tokens_beyond_embedding(crash)


def _labels_beyond_outputs(crash: Crash) -> LabelBeyondOutputs | None:
    """Compare labels on the CPU with the number of outputs."""
    outputs = _outputs(crash)
    if outputs is None:
        return LabelBeyondOutputs() if of_packages("label_kernel").search(crash.facts.message) else None
    num_outputs, setting = outputs
    for labels, source in _labels(crash):
        classes = labels[labels != -100]
        if classes.size and ((classes < 0) | (classes >= num_outputs)).any():
            return LabelBeyondOutputs(
                labels=labels,
                num_outputs=num_outputs,
                ignore_index=-100,
                outputs_setting=setting,
                labels_from=source,
            )
    return None


def _outputs(crash: Crash) -> tuple[int, str] | None:
    """Return the number of classes that the model in the frames is built for, and how it is set."""
    setting = ""
    for variables in crash.inward():
        for value in variables.values():
            model = getattr(value, "model", value)
            classes = configured_classes(model)
            if classes is not None:
                return classes, outputs_setting(model)
            if hasattr(value, "named_modules"):
                setting = setting or outputs_setting(value)
    for variables in reversed(crash.own()):
        for name in ("logits", "outputs", "output", "pred", "preds", "predictions"):
            scores: Any = getattr(variables.get(name), "logits", variables.get(name))
            if is_tensor(scores) and scores.ndim == 2 and scores.shape[1] > 1:  # shapes outlive the device
                return int(scores.shape[1]), setting or OUTPUTS_SETTING
        for value in variables.values():
            if type(value).__name__ == "Sequential" and hasattr(value[-1], "out_features"):
                return int(value[-1].out_features), OUTPUTS_SETTING
    return None


def _labels(crash: Crash) -> Iterator[tuple[Array, str]]:
    """Yield the labels that can be read without the device, and where they are from, the nearest first."""
    for batch in _batches(crash):
        for name in LABEL_NAMES:
            if (labels := _on_host(batch.get(name))) is not None:
                yield labels, "this batch"
    for name, dataset in islice(_datasets(crash), DATASETS_READ):
        if (labels := _of_dataset(dataset)) is not None:
            yield labels, f"the rows of {name} that were read"


def _batches(crash: Crash) -> Iterator[Mapping[str, Any]]:
    """Yield what may hold the parts of a batch: the variables of a frame, or one of them."""
    for variables in crash.inward():
        held = (variables, variables.get("batch"), variables.get("inputs"))
        yield from (value for value in held if isinstance(value, Mapping))


def _datasets(crash: Crash) -> Iterator[tuple[str, Any]]:
    """Yield the datasets in the frames by the names of their variables: those of trainers and loaders first."""
    for variables in crash.inward():
        for name, value in variables.items():
            if hasattr(value, "train_dataset"):
                yield "train_dataset", value.train_dataset
            elif hasattr(value, "batch_sampler") and not isinstance(value, type):
                yield name, value.dataset
    for variables in reversed(crash.own()):
        for name, value in variables.items():
            if any(kind.__name__ == "Dataset" for kind in type(value).__mro__):
                yield name, value


def _on_host(value: Any) -> Array | None:
    if is_tensor(value) and str(value.device) != "cpu":
        return None
    array = to_array(value) if is_tensor(value) else None
    return array.reshape(-1) if array is not None and array.dtype.kind in "iu" else None


def _of_dataset(dataset: Any) -> Array | None:
    """Read class labels, integers (rows,), spread over a dataset; None if its rows hold none."""
    from diagnostics.collectors.pytorch.data import class_labels
    from diagnostics.collectors.shared.dataset_rows import sample_rows

    try:
        return class_labels(sample_rows(dataset).rows)
    except Exception:  # the user's own code, on a day on which things fail
        return None


def _tokens_beyond_embedding(crash: Crash) -> TokenBeyondEmbedding | None:
    rows = _embedding_rows(crash)
    for ids in (_on_host(batch.get("input_ids")) for batch in _batches(crash)):
        if rows is not None and ids is not None and ((ids < 0) | (ids >= rows)).any():
            return TokenBeyondEmbedding(ids=ids, rows=rows)
    return None


def _embedding_rows(crash: Crash) -> int | None:
    for variables in crash.inward():
        for value in variables.values():
            model = getattr(value, "model", value)
            if hasattr(model, "get_input_embeddings") and not isinstance(model, type):
                return int(model.get_input_embeddings().num_embeddings)
    return None


def candidates(frames: Sequence[FrameFacts]) -> tuple[FrameFacts, ...]:
    """List the user's lines that launched work on a device, from the start of the training step to the wait.

    Args:
        frames: of the traceback, outermost first. The source of the user's files is read where it is at hand.

    Returns:
        The lines in order of execution, the latest `MOST_LINES` of them; empty if no source could be read.
    """
    found: list[FrameFacts] = []
    for frame in reversed([frame for frame in frames if frame.yours]):
        before, in_loop = _before(frame)
        found = before + found
        if in_loop:
            break
    return tuple(found[-MOST_LINES:])


def _before(frame: FrameFacts) -> tuple[list[FrameFacts], bool]:
    """List the lines of one frame, its own included, and say whether a loop around it bounds them."""
    lines = linecache.getlines(frame.file)
    if not lines or linecache.getline(frame.file, frame.line).strip() != (frame.code or ""):
        return [], False  # no source, or not the one that ran
    try:
        tree: ast.AST = ast.parse("".join(lines))
    except SyntaxError:  # of a file that was edited since
        return [], False
    # The innermost loop around the line, or else its function or file.
    around = [node for node in path_to(tree, None, frame.line) if isinstance(node, _BLOCKS)]
    block = next(node for node in reversed(around) if node.body[0].lineno <= frame.line)
    launched = [
        FrameFacts(frame.file, line, frame.function, lines[line - 1].strip(), yours=True)
        for line in _launching_lines(block.body)
        if line <= frame.line
    ]
    return launched, isinstance(block, ast.For | ast.While)


_BLOCKS = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_WITHIN_BLOCKS = (ast.stmt, ast.ExceptHandler)


def _launching_lines(body: Iterable[ast.stmt | ast.ExceptHandler]) -> Iterator[int]:
    """Yield the first line of each statement that may launch work on a device."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        parts = list(ast.iter_child_nodes(statement))
        if _gives_work(part for part in parts if not isinstance(part, _WITHIN_BLOCKS)):
            yield statement.lineno
        yield from _launching_lines(part for part in parts if isinstance(part, _WITHIN_BLOCKS))


def _gives_work(nodes: Iterable[ast.AST]) -> bool:
    return any(
        (isinstance(part, ast.Call) and not _is_host_only(part.func))
        or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult))
        for node in nodes
        for part in ast.walk(node)
    )


def _is_host_only(function: ast.expr) -> bool:
    of_host = of_packages("on_host")
    if isinstance(function, ast.Attribute):
        return of_host.fullmatch(function.attr) is not None
    known = isinstance(function, ast.Name) and (function.id in dir(builtins) or of_host.fullmatch(function.id))
    return bool(known)
