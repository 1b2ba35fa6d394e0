"""`largest_batch`: searches for the largest batch that fits, trying each size in its own child process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diagnostics.errors import InvalidInput, what

if TYPE_CHECKING:
    from rich.console import Console

    from .largest_batch_trial import Step, Trial


@dataclass(frozen=True)
class BatchSearch:
    """The result of `largest_batch`.

    Attributes:
        largest: the largest size that fits; 0 if not even a single row does.
        too_large: the smallest size that did not fit; None if all sizes that were tried fit.
        trials: in order of time.
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
    """Search for the largest batch that fits into memory, by trying.

    Every size is tried in a new process, so that a size that does not fit, or that the system kills, has no side
    effects. The size is doubled until it does not fit, then the gap is halved.

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
        seconds: how long one trial may take, including imports.
        show: whether to print each trial to standard error.

    Raises:
        InvalidInput: an argument is wrong, `step` cannot be imported, or it fails for another reason than memory;
            its traceback is then in the notes of the exception.
    """
    from .largest_batch_trial import check_importable

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
    from .largest_batch_trial import try_batch

    if console is None:
        return try_batch(step, size, seconds, smaller_fits=smaller_fits)
    with console.status(f"trying batches of {size}"):
        trial = try_batch(step, size, seconds, smaller_fits=smaller_fits)
    console.print(str(trial), soft_wrap=True)
    return trial
