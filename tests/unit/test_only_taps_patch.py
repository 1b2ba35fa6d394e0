"""Functions are patched and hooks are registered in `taps` alone, apart from a list that may only shrink."""

import ast
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "diagnostics"
MECHANISM = {"collectors/isolation/patching.py"}  # and only `taps` uses it
FOLDERS = ("taps/", "collectors/pytorch/dependence/", "collectors/keras/dependence/")

# Python's functions and IPython's, which are no framework's.
OF_PYTHON = {
    "collectors/isolation/import_hooks.py",  # the loader of a module
    "run/termination.py",  # `os._exit`
    "run/notebook/cell.py",  # the traceback of a cell
    "run/observer.py",  # `traceback`, which leaves our frames out
}
# Still to be moved.
TO_MOVE = {
    # They change what a call returns or is given.
    "collectors/pytorch/watch/record/model_hooks.py",  # our hooks stay out of copies, also of our own
    "run/ranks/spawn_hook.py",
    # Of a pass of the library's own.
    "collectors/keras/examine/kept_outputs.py",
    "collectors/pytorch/activations.py",
    "collectors/pytorch/checks/positions.py",
    "collectors/pytorch/examine/reproduce.py",
    "collectors/pytorch/watch/replay/module_calls.py",
    # On one model, one optimizer or one tensor of the script.
    "collectors/lightning/called.py",
    "collectors/lightning/pipeline.py",
    "collectors/pytorch/watch/closures.py",
    "collectors/pytorch/watch/metrics/outputs/opposed_gradients.py",
    "collectors/pytorch/watch/metrics/outputs/predictions.py",
    "collectors/pytorch/watch/metrics/recurrent_gradients.py",
    "collectors/pytorch/watch/optimizer_steps.py",
    "collectors/pytorch/watch/over_time.py",
    "collectors/pytorch/watch/watcher.py",
    "collectors/transformers/first_step.py",
    "collectors/transformers/pipeline.py",
}


def touches(code: str) -> bool:
    """Return whether code patches functions with `Patches`, exchanges code, or registers hooks."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "Patches" or (called.startswith("register_") and called.endswith("hook")):
                return True
        if isinstance(node, ast.Attribute) and node.attr == "__code__" and isinstance(node.ctx, ast.Store):
            return True
    return False


def test_detector_knows_patches_hooks_and_exchanged_code():
    assert touches("Patches().before(owner, 'step', work)")
    assert touches("model.register_forward_hook(work)")
    assert touches("function.__code__ = other")
    assert not touches("code = function.__code__")


def test_files_that_patch_or_hook_are_listed():
    """A file is taken off the list when it has become a subscriber of a tap, and none is added."""
    files = {file.relative_to(LIBRARY).as_posix(): file.read_text() for file in LIBRARY.rglob("*.py")}
    touching = {name for name, code in files.items() if not name.startswith(FOLDERS) and touches(code)}
    assert touching == MECHANISM | OF_PYTHON | TO_MOVE
