"""One batch size, tried in a child process: it may run out of memory, or be killed, and harms nobody."""

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

CLEANUP_S = 5.0  # a killed child is gone at once; this only keeps a broken system from hanging us


@dataclass(frozen=True)
class Trial:
    """One batch size, tried once.

    Attributes:
        size: rows in the batch.
        peak: bytes of memory used at most; None if the process could not tell any more.
        where: whose memory that is: ``GPU`` or ``host``.
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
    """Make sure that a child process can import the step.

    Raises:
        InvalidInput: it cannot, or this is such a child, importing the file that searches.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InvalidInput(
            "largest_batch() was called while its own child process imported this file, and would go on for ever. "
            'Put the call under: if __name__ == "__main__":'
        )
    main = sys.modules.get("__main__")
    name = getattr(step, "__qualname__", type(step).__name__)
    try:
        pickle.dumps(step)
        lost = getattr(step, "__module__", "") == "__main__" and not hasattr(main, "__file__")
    except Exception:  # what pickle raises depends on what it meets
        lost = True
    if lost:
        raise InvalidInput(
            f"largest_batch() cannot hand {name} to another process: only a function at the top level of a file "
            "can be imported there, not a lambda, an inner function or a notebook's. Write it into a file and "
            "import it."
        )


def try_batch(step: Step, size: int, seconds: float, *, smaller_fits: bool) -> Trial:
    """Try one size in a process of its own, which is gone when this returns, however it returns.

    Raises:
        InvalidInput: the step took longer than `seconds`, or failed for another reason than memory.
    """
    context = multiprocessing.get_context("spawn")  # a forked child could not use a card that its parent has used
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(step, size, sender), name=f"batches of {size}")
    started = time.monotonic()
    said: tuple[Outcome, str, str, int | None, str] | None = None
    try:
        child.start()
        sender.close()
        if not receiver.poll(seconds):
            raise InvalidInput(
                f"step({size}) took longer than {seconds:g} s; largest_batch(seconds=...) allows more."
            )
        said = receiver.recv()
        child.join()
    except EOFError:  # it ended without a word
        child.join()
    finally:
        if child.is_alive():
            child.kill()
            child.join(CLEANUP_S)
        receiver.close()
    elapsed = time.monotonic() - started
    if said is None:
        return Trial(size, False, elapsed, reason=_ended(size, child.exitcode, smaller_fits))
    outcome, reason, trace, peak, where = said
    if outcome == "failed":
        error = InvalidInput(f"step({size}) failed, and not for want of memory: {reason}")
        error.add_note(trace)
        raise error
    return Trial(size, outcome == "fits", elapsed, peak, where, reason)


def _ended(size: int, code: int | None, smaller_fits: bool) -> str:
    """Say how a process ended that could not say so itself.

    Raises:
        InvalidInput: memory is not to blame.
    """
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        # Some kernels do not survive a refusal of memory: they abort, or write where nothing is.
        if name == "SIGKILL" or smaller_fits:
            return f"the process was ended by {name}"
        raise InvalidInput(f"step({size}) ended its process by {name}, and no smaller size is known to fit.")
    raise InvalidInput(
        f"The process that should run step({size}) ended by itself (exit code {code}) and gave no answer. What it "
        "said stands above."
    )


def _run(step: Step, size: int, sender: Connection) -> None:
    """Run in the child: try, and report."""
    from diagnostics.collectors.system.process_memory import peak_memory

    threading.Thread(target=_leave_with_parent, daemon=True).start()
    outcome: Outcome = "fits"
    reason = trace = ""
    try:
        step(size)
    except KeyboardInterrupt:
        return
    except BaseException as error:
        outcome, reason = _why(error)
        trace = "".join(traceback.format_exception(error))
    sender.send((outcome, reason, trace, *peak_memory()))


def _why(error: BaseException) -> tuple[Outcome, str]:
    from diagnostics.facts.crash import OutOfMemoryCrash

    from .explain import facts_of_exception

    crash, *symptoms = facts_of_exception(error)
    refused = next((symptom for symptom in symptoms if isinstance(symptom, OutOfMemoryCrash)), None)
    if refused is None:
        return "failed", f"{type(error).__name__}: {crash.first_line}"
    tried = "" if refused.tried is None else f"{in_bytes(refused.tried)} more was asked for"
    return "does not fit", tried


def _leave_with_parent() -> None:
    """End this process when its parent has ended without ending it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
