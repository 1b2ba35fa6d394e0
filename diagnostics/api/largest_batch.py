"""`largest_batch`: searches for the largest batch that fits, trying each size in its own child process."""

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
from typing import TYPE_CHECKING, Any, Literal

from diagnostics.errors import InvalidInput, what
from diagnostics.facts.gpu import in_bytes

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from rich.console import Console

Step = Callable[[int], object]
Outcome = Literal["fits", "does not fit", "failed"]

CLEANUP_S = 5.0  # a killed child exits at once; the limit only prevents hanging on a broken system


@dataclass(frozen=True)
class BatchSearch:
    """The result of `largest_batch`.

    Attributes:
        largest: the largest size that fits; 0 if not even a single row does.
        too_large: the smallest size that did not fit; None if all sizes that were tried fit.
        trials: in chronological order.
    """

    largest: int
    too_large: int | None
    trials: tuple[Trial, ...]

    def __str__(self) -> str:
        """Render the trials, smallest first, and the result."""
        lines = [str(trial) for trial in sorted(self.trials, key=lambda trial: trial.size)]
        if self.too_large is None:
            answer = f"Batches of {self.largest} fit, the largest size that was tried."
        elif not self.largest:
            answer = "Not even a single row fits."
        else:
            answer = f"Batches of {self.largest} fit, batches of {self.too_large} do not."
        return "\n".join([*lines, answer])


def largest_batch(
    step: Step,
    start: int = 1,
    *,
    limit: int | None = None,
    within: float = 0.1,
    seconds: float = 600.0,
    show: bool = True,
) -> BatchSearch:
    """Search for the largest batch that fits into memory, by trial.

    Every size is tried in a new process, so a size that does not fit, or a process that the system kills, has no
    side effects. The size is doubled until it does not fit, then the gap is halved.

        # search.py
        def step(batch_size):
            model, optimizer = build()
            for _ in range(2):  # an optimizer creates its state in the first step; the second needs most memory
                loss = model(**random_batch(batch_size)).loss
                loss.backward()
                optimizer.step()

        if __name__ == "__main__":  # each new process imports this file
            print(diagnostics.largest_batch(step, start=8))

    Args:
        step: builds the model and trains it on batches of the given size. It must be at the top level of a file,
            so that another process can import it. Use rows as long as the longest.
        start: the size to try first.
        limit: the largest size to try; None for no limit.
        within: how far the smallest size that does not fit may be above the largest that fits, as a share of the
            latter. 0 finds the exact number.
        seconds: time limit for one trial, including imports.
        show: whether to print each trial to standard error.

    Raises:
        InvalidInput: an argument is wrong, `step` cannot be imported, or it fails for a reason other than memory;
            its traceback is then in the notes of the exception.
    """
    _check(step, start, limit, within, seconds)
    check_importable(step)
    console = _console() if show else None
    fits, fails, size = 0, None, start
    trials: list[Trial] = []
    while True:
        trial = _shown(console, step, size, seconds, smaller_fits=fits > 0)
        trials.append(trial)
        if trial.fits:
            fits = size
        else:
            fails = size
        following = _next(fits, fails, limit, within)
        if following is None:
            return BatchSearch(fits, fails, tuple(trials))
        size = following


def _check(step: Any, start: Any, limit: Any, within: Any, seconds: Any) -> None:
    if not callable(step):
        raise InvalidInput(
            f"largest_batch() was given {what(step)} as step. It takes a function of one argument, the batch "
            "size, which builds the model and trains it on batches of that size."
        )
    for name, value in (("start", start), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InvalidInput(f"largest_batch({name}={value!r}): expected a whole number of rows, at least 1.")
    if limit is not None and limit < start:
        raise InvalidInput(f"largest_batch(start={start}, limit={limit}): start must not be above limit.")
    for name, value, least in (("within", within, 0), ("seconds", seconds, 1)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise InvalidInput(f"largest_batch({name}={value!r}): expected a number, at least {least}.")


def _next(fits: int, fails: int | None, limit: int | None, within: float) -> int | None:
    """Return the next size to try; None if the result is known."""
    if fails is None:
        following = 2 * fits if limit is None else min(2 * fits, limit)
        return following if following > fits else None
    if not fits:
        return fails // 2 or None
    return (fits + fails) // 2 if fails - fits > max(1, within * fits) else None


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def _shown(console: Console | None, step: Step, size: int, seconds: float, *, smaller_fits: bool) -> Trial:
    if console is None:
        return try_batch(step, size, seconds, smaller_fits=smaller_fits)
    with console.status(f"trying batches of {size}"):
        trial = try_batch(step, size, seconds, smaller_fits=smaller_fits)
    console.print(str(trial), soft_wrap=True)
    return trial


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
        InvalidInput: the step took longer than `seconds`, or failed for a reason other than memory.
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
    from diagnostics.collectors.system.host_memory import peak_memory

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
    from diagnostics.collectors.crash.read import facts_of_exception
    from diagnostics.facts.crash.memory import OutOfMemoryCrash

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
