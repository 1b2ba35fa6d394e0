"""Tries one batch size in a child process, which may run out of memory or be killed without side effects."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from diagnostics.errors import InvalidInput
from diagnostics.facts.gpu import in_bytes

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Step = Callable[[int], object]
Outcome = Literal["fits", "does not fit", "failed"]

CLEANUP_S = 5.0  # a killed child exits at once; the limit only prevents hanging on a broken system


@dataclass(frozen=True)
class Trial:
    """One batch size, tried once.

    Attributes:
        size: rows in the batch.
        peak: peak memory in bytes; None if the process ended without reporting it.
        where: which memory that is: ``GPU`` or ``host``.
        reason: why it does not fit; empty if it does.
    """

    size: int
    fits: bool
    seconds: float
    peak: int | None = None
    where: str = "host"
    reason: str = ""

    def __str__(self) -> str:
        """Render as a line of a table."""
        peak = "" if self.peak is None else f"{in_bytes(self.peak):>11} of the {self.where}'s memory"
        verdict = "fits        " if self.fits else "does not fit"
        return f"{self.size:>7}  {verdict} {self.seconds:>6.1f} s {peak}  {self.reason}".rstrip()


def check_importable(step: Step) -> None:
    """Check that a child process can import the step.

    Raises:
        InvalidInput: it cannot, or this is such a child process, which imports the calling file.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InvalidInput(
            "largest_batch() was called while its own child process imported this file, which would never end. "
            'Put the call under: if __name__ == "__main__":'
        )
    main = sys.modules.get("__main__")
    name = getattr(step, "__qualname__", type(step).__name__)
    try:
        pickle.dumps(step)
        lost = getattr(step, "__module__", "") == "__main__" and not hasattr(main, "__file__")
    except Exception:  # pickle raises various exceptions
        lost = True
    if lost:
        raise InvalidInput(
            f"largest_batch() cannot pass {name} to another process, which can import only functions at the top "
            "level of a file, not a lambda, an inner function or a function in a notebook. Move it to a file and "
            "import it."
        )


def try_batch(step: Step, size: int, seconds: float, *, smaller_fits: bool) -> Trial:
    """Try one size in its own process, which has ended when this returns or raises.

    Raises:
        InvalidInput: the step took longer than `seconds`, or failed for another reason than memory.
    """
    context = multiprocessing.get_context("spawn")  # a forked child could not use a GPU that its parent has used
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(step, size, sender), name=f"batches of {size}")
    started = time.monotonic()
    result: tuple[Outcome, str, str, int | None, str] | None = None
    try:
        child.start()
        sender.close()
        if not receiver.poll(seconds):
            raise InvalidInput(
                f"step({size}) took longer than {seconds:g} s; largest_batch(seconds=...) allows more."
            )
        result = receiver.recv()
        child.join()
    except EOFError:  # it ended without a result
        child.join()
    finally:
        if child.is_alive():
            child.kill()
            child.join(CLEANUP_S)
        receiver.close()
    elapsed = time.monotonic() - started
    if result is None:
        return Trial(size, False, elapsed, reason=_ended(size, child.exitcode, smaller_fits))
    outcome, reason, trace, peak, where = result
    if outcome == "failed":
        error = InvalidInput(f"step({size}) failed, but not because of memory: {reason}")
        error.add_note(trace)
        raise error
    return Trial(size, outcome == "fits", elapsed, peak, where, reason)


def _ended(size: int, code: int | None, smaller_fits: bool) -> str:
    """Return why a process ended without a result.

    Raises:
        InvalidInput: memory is not the cause.
    """
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        # Some kernels abort or crash when an allocation fails.
        if name == "SIGKILL" or smaller_fits:
            return f"the process was ended by {name}"
        raise InvalidInput(f"step({size}) ended its process by {name}, and no smaller size is known to fit.")
    raise InvalidInput(
        f"The process of step({size}) ended by itself (exit code {code}) without a result. Its output is above."
    )


def _run(step: Step, size: int, sender: Connection) -> None:
    """Try the size and send the result; runs in the child process."""
    from diagnostics.collectors.system.process_memory import peak_memory

    threading.Thread(target=_leave_with_parent, daemon=True).start()
    outcome: Outcome = "fits"
    reason = trace = ""
    try:
        step(size)
    except KeyboardInterrupt:
        return
    except BaseException as error:
        _release_memory(error)
        outcome, reason = _why(error)
        trace = "".join(traceback.format_exception(error))
    sender.send((outcome, reason, trace, *peak_memory()))


def _release_memory(error: BaseException | None) -> None:
    """Free what the frames of the step hold: to describe an error takes memory, too, and there may be none."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _why(error: BaseException) -> tuple[Outcome, str]:
    from diagnostics.facts.crash.memory import OutOfMemoryCrash

    from .explain import facts_of_exception

    crash, *symptoms = facts_of_exception(error)
    refused = next((symptom for symptom in symptoms if isinstance(symptom, OutOfMemoryCrash)), None)
    if refused is None:
        return "failed", f"{type(error).__name__}: {crash.first_line}"
    tried = "" if refused.tried is None else f"{in_bytes(refused.tried)} more was requested"
    return "does not fit", tried


def _leave_with_parent() -> None:
    """End this process once its parent has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
