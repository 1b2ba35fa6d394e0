"""Finds dropout that is still on in evaluation mode, and how the script calls it."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.isolation.installed import is_installed_module
from diagnostics.collectors.shared.dependence.subject import Unclear
from diagnostics.facts.dependence import ActiveDropout, ModeArgument
from diagnostics.facts.where import Where

from .subject import Subject

# Position and name of the rate, and of the argument that says whether the model trains; None: it has none.
FUNCTIONS: dict[Any, tuple[tuple[int, str], tuple[int, str] | None]] = {
    F.dropout: ((1, "p"), (2, "training")),
    F.dropout1d: ((1, "p"), (2, "training")),
    F.dropout2d: ((1, "p"), (2, "training")),
    F.dropout3d: ((1, "p"), (2, "training")),
    F.alpha_dropout: ((1, "p"), (2, "training")),
    F.feature_alpha_dropout: ((1, "p"), (2, "training")),
    torch.dropout: ((1, "p"), (2, "train")),
    F.scaled_dot_product_attention: ((4, "dropout_p"), None),
}
DEFAULTS = {F.alpha_dropout: False, F.feature_alpha_dropout: False}  # of `training`; True for all others
MAX_CALLS = 8  # calls that are told apart


def active_dropout(subject: Subject) -> tuple[tuple[ActiveDropout, ...], float]:
    """Run the model twice in evaluation mode; return the dropout that is on, and how far the answers differ.

    Raises:
        Unclear: the shape of the answers is random.
        OutOfTime: the time is over.
    """
    recorder = _Recorder()
    with subject.observed(recorder.begin, recorder):
        first = subject.ask(subject.inputs)
    if not recorder.seen:
        return (), 0.0
    change = first.change(subject.ask(subject.inputs, seed=1))
    if change != change or change == float("inf"):
        raise Unclear("the predictions are not finite, or their shape is random")
    return tuple(recorder.seen.values()), change


class _Recorder(TorchFunctionMode):  # type: ignore[misc]  # mypy does not follow torch
    """Records calls of dropout that drop, but for those that corrupt the model's inputs, as to denoise them.

    Attributes:
        seen: by file, line and function.
        inputs: of the model.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inputs: tuple[Tensor, ...] = ()
        self.seen: dict[tuple[str, int, str], ActiveDropout] = {}

    def begin(self, given: Mapping[str, Tensor]) -> None:
        """Take the inputs of a call."""
        self.inputs = tuple(given.values())

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Record a call, and make it."""
        options = kwargs or {}
        if function in FUNCTIONS and len(self.seen) < MAX_CALLS:
            self._called(function, args, options)
        return function(*args, **options)

    def _called(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        rate, mode = FUNCTIONS[function]
        share = _argument(args, options, rate, 0.0 if mode is None else 0.5)
        on = mode is None or _argument(args, options, mode, DEFAULTS.get(function, True))
        dropped = args[0] if args else options.get("input")
        if not on or isinstance(share, Tensor) or not share > 0 or any(dropped is t for t in self.inputs):
            return
        name = function.__name__
        where, told = _caller(name, mode)
        key = ("", 0, name) if where is None else (where.file, where.line, name)
        self.seen.setdefault(key, ActiveDropout(name, float(share), told, where))


def _argument(args: tuple[Any, ...], options: dict[str, Any], which: tuple[int, str], default: Any) -> Any:
    place, name = which
    return args[place] if len(args) > place else options.get(name, default)


def _caller(name: str, mode: tuple[int, str] | None) -> tuple[Where | None, ModeArgument]:
    """Return the innermost line of the user's code, and what its call says of the model's mode."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("diagnostics.") and module != __name__:
            return None, "unknown"
        if not is_installed_module(module) and module != __name__:
            code = frame.f_code
            where = Where(Path(code.co_filename).name, frame.f_lineno, code.co_name)
            return where, "nothing" if mode is None else _told(code, frame.f_lasti, name, mode)
        frame = frame.f_back
    return None, "unknown"


def _told(code: CodeType, instruction: int, name: str, mode: tuple[int, str]) -> ModeArgument:
    call = _expression(code, instruction)
    if not isinstance(call, ast.Call) or name not in ast.unparse(call.func):
        return "unknown"  # a function of another name that calls it
    place, keyword = mode
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return "unknown"
    given = [k.value for k in call.keywords if k.arg == keyword] or call.args[place : place + 1]
    if not given:
        return "nothing"
    return "always" if isinstance(given[0], ast.Constant) and given[0].value else "something"


def _expression(code: CodeType, instruction: int) -> ast.expr | None:
    """Parse the source of the call that an instruction makes; None if the source is not there."""
    position = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    first, last, start, end = position
    if first is None or last is None or start is None or end is None:
        return None
    lines = [line.encode() for line in linecache.getlines(code.co_filename)[first - 1 : last]]
    if not lines:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
