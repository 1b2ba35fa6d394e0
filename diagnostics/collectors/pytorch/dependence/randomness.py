"""Finds what is drawn at random in evaluation mode: dropout that is still on, first states of recurrent layers."""

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
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.isolation.installed import is_installed_module
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.shared.dependence.subject import Unclear
from diagnostics.facts.dependence import ActiveDropout, ModeArgument, RandomStateFacts
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
DRAWS: dict[Any, str] = {
    torch.randn: "randn",
    torch.rand: "rand",
    torch.randn_like: "randn_like",
    torch.rand_like: "rand_like",
    torch.normal: "normal",
    Tensor.normal_: "normal_",
    Tensor.uniform_: "uniform_",
}
RECURRENT = (nn.RNNBase, nn.RNNCellBase)
MAX_DRAWS = 256  # draws kept during a run


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


def random_state(subject: Subject) -> RandomStateFacts | None:
    """Run the model twice in evaluation mode; return the state that was drawn, and how far the answers differ.

    None where no recurrent layer is given a state that was drawn and not computed: one that comes from other
    layers, as of a variational decoder, is a sample on purpose.

    Raises:
        Unclear: the answers are not finite, or of random shape.
        OutOfTime: the time is over.
    """
    layers = [(name, module) for name, module in subject.model.named_modules() if isinstance(module, RECURRENT)]
    if not layers:
        return None
    recorder, found = _Draws(), list[tuple[str, str]]()

    def given(name: str, kind: str) -> Callable[..., None]:
        def before(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
            state = options.get("hx", arguments[1] if len(arguments) > 1 else None)
            drawn = [recorder.drawn[key] for tensor in tensors(state) if (key := _key(tensor)) in recorder.drawn]
            if drawn:
                found.append((f"{name} ({kind})" if name else kind, drawn[0]))

        return before

    hooks = [
        module.register_forward_pre_hook(given(name, type(module).__name__), with_kwargs=True)
        for name, module in layers
    ]
    try:
        with subject.observed(lambda _: None, recorder):
            first = subject.ask(subject.inputs)
    finally:
        for hook in hooks:
            hook.remove()
        recorder.clear()
    if not found:
        return None
    change = first.change(subject.ask(subject.inputs, seed=1))
    if change != change or change == float("inf"):
        raise Unclear("the predictions are not finite, or their shape is random")
    spread = float(first.main.std(0, ddof=1).max()) if len(first.main) > 1 else 0.0
    return RandomStateFacts(found[0][0], found[0][1], change, spread, subject.target is not None)


class _Draws(TorchFunctionMode):  # type: ignore[misc]  # mypy does not follow torch
    """Records what is drawn at random.

    Attributes:
        drawn: the function that drew, by the memory that it drew into.
    """

    def __init__(self) -> None:
        super().__init__()
        self.drawn: dict[int, str] = {}
        self._kept: list[Tensor] = []  # so that no other tensor comes to lie there

    def clear(self) -> None:
        """Let go of all tensors."""
        self._kept.clear()

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Make a call, and record what it drew."""
        result = function(*args, **(kwargs or {}))
        if function in DRAWS and type(result) is Tensor and len(self._kept) < MAX_DRAWS:
            self._kept.append(result)
            self.drawn[_key(result)] = DRAWS[function]
        return result


def _key(tensor: Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())
