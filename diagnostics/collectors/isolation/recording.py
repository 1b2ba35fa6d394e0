"""Detects compilers and tracers that record the operations of this thread: then this library computes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from diagnostics.collectors.system.supported import missing_name

# PyTorch, once it is imported; and its functions that are asked in each hook and patch, a dozen times a step.
_torch: Any = None
_compiler_callback: Any = None
_is_fx_tracing: Any = None
_dispatch_modes: Any = None
_tracing_state: Any = None
_transformations: Any = None
_uncompiled: list[CodeType] = []


def is_recorded() -> bool:
    """Whether what this thread computes now becomes a program, or is computed without numbers.

    By torch.compile, which also takes what runs between its graphs; torch.export, torch.jit.trace, make_fx and
    torch.fx; a transformation of torch.func; a FakeTensorMode; the capture of a CUDA graph. A mode of the script's
    own does not count: `without_user_modes` sets it aside.
    """
    # The first question is the only one that torch.compile follows, and answers by itself.
    if _torch is None or _torch.compiler.is_compiling():
        return _torch is not None or (_is_imported() and is_recorded())
    return bool(
        _tracing_state() is not None
        or _transformations() is not None
        or (_dispatch_modes() and _is_of_torch(_torch._C._get_dispatch_stack_at(0)))
        or _compiler_callback() is not None
        or _is_fx_tracing()
        or (_torch.cuda._initialized and _torch.cuda.is_current_stream_capturing())
    )


def is_compiled() -> bool:
    """Whether this thread is within a function of torch.compile's: of those who record, it alone follows hooks."""
    if _torch is None or _torch.compiler.is_compiling():
        return _torch is not None or (_is_imported() and is_compiled())
    return _compiler_callback() is not None


def unless_recorded(work: Callable[..., object]) -> Callable[..., None]:
    """Return a hook that does some work, but not at calls that a compiler or tracer records."""

    def hook(*arguments: Any, **options: Any) -> None:
        if not is_recorded():
            work(*arguments, **options)

    uncompiled(hook.__code__)
    return hook


def uncompiled(code: CodeType) -> CodeType:
    """Have torch.compile leave a function of ours as it is where it is called between two graphs.

    What the function calls is compiled as before, and where a compiler follows a call of it, it is followed, too.
    """
    if _torch is None:
        _uncompiled.append(code)
        _is_imported()
    else:
        _skip(code)
    return code


def _is_imported() -> bool:
    global _torch, _compiler_callback, _dispatch_modes, _is_fx_tracing, _tracing_state, _transformations
    torch: Any = sys.modules.get("torch")
    underway = getattr(getattr(torch, "__spec__", None), "_initializing", False)
    if underway or not hasattr(getattr(torch, "_C", None), "_dynamo"):  # or the script has a `torch.py`
        return False
    if missing_name(torch) is not None:
        return False  # nothing of it is observed
    tracer = torch.fx._symbolic_trace
    _is_fx_tracing = getattr(tracer, "_get_is_fx_tracing", lambda: tracer._is_fx_tracing_flag)
    _compiler_callback = torch._C._dynamo.eval_frame.get_eval_frame_callback
    _dispatch_modes = torch._C._len_torch_dispatch_stack
    _tracing_state = torch._C._get_tracing_state
    _transformations = torch._C._functorch.peek_interpreter_stack
    _torch = torch
    while _uncompiled:
        _skip(_uncompiled.pop())
    return True


def _is_of_torch(mode: Any) -> bool:
    """Whether a mode is one of PyTorch's own, which are below all others: of fake tensors, or of a tracer."""
    return getattr(mode, "_mode_key", None) is not None


def _skip(code: CodeType) -> None:
    frames = _torch._C._dynamo.eval_frame
    if hasattr(frames, "set_code_exec_strategy"):
        action = frames._FrameAction
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))


for _asked in (is_recorded, is_compiled):
    uncompiled(_asked.__code__)
