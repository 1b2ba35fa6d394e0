"""See `RepeatedWorkerRandomness`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.data import HeldGenerator, WorkerFacts


class RepeatedWorkerRandomness(Rule):
    """The loader's workers draw the same random numbers, from copies of one generator.

    ## What it does
    Looks for random generators of NumPy, Python or PyTorch that the dataset, a transform or the collator draws
    from, and that a loader with worker processes copies into each of them. The code is read, and nothing is drawn.

    ## Why it is bad
    Each worker gets a copy of the dataset, and with it of the generator in its present state. So all workers draw
    the same series: with 4 of them there is a quarter of the augmentations. Unless the workers are persistent, the
    next epoch begins with new copies in the same state, and repeats them all. PyTorch gives each worker seeds of
    its own only for the global generators: `torch`, `random` and `numpy.random`.

    ## Example
    ```python
    class Photos(Dataset):
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def __getitem__(self, index):
            return self.images[index] + self.rng.normal(0, 0.1, self.images[index].shape)
    ```

    ## Instead
    ```python
    def reseed(worker):
        info = torch.utils.data.get_worker_info()
        info.dataset.rng = np.random.default_rng(info.seed)    # differs by worker and by epoch

    loader = DataLoader(Photos(), num_workers=4, worker_init_fn=reseed)
    ```

    ## Thresholds
    None. With a single worker it is a note, and only if it is not persistent: then the epochs repeat each other.

    ## Known problems
    A generator is taken for copied unless its class, or `worker_init_fn`, is seen to seed it: by
    `get_worker_info`, by a new assignment, or by a call of `seed`. Generators in compiled code are not found.

    ## Sources
    The documentation of `torch.utils.data`, "Randomness in multi-process data loading"; Tanel Pärnamaa, "Using
    PyTorch + NumPy? You're making a mistake" (2021), on the global generator of NumPy before PyTorch 1.9.
    """

    severity = "warning"
    FIXES = {
        "torch": (
            "DataLoader(..., worker_init_fn=reseed), with a reseed that sets "
            "get_worker_info().dataset.rng = np.random.default_rng(get_worker_info().seed)",
            "draw from torch: PyTorch seeds it in each worker",
        ),
        "transformers": "draw from torch or numpy.random: the Trainer seeds both in each worker",
    }

    @check
    def from_workers(self, workers: WorkerFacts) -> Finding | None:
        """Look for a generator that is copied."""
        if not workers.generators or (workers.workers == 1 and workers.persistent):
            return None
        held = workers.generators[0]
        again = "" if workers.persistent else " Each epoch starts new workers, with the same copies again."
        if workers.workers == 1:
            drawn = (
                "the worker draws from a copy of it, which is made anew for each epoch: all epochs draw the same"
            )
            again = ""
        else:
            drawn = (
                f"each of the {workers.workers} workers has a copy of it in the same state, so all draw the same"
            )
        return self.found(
            f"{held.drawn_in} draws from {_called(held)}, one {held.kind} for all rows, and {drawn} "
            f"numbers.{again} The random augmentations repeat each other.",
            evidence={
                "workers": workers.workers,
                "persistent": workers.persistent,
                "generators": [_called(one) for one in workers.generators],
            },
            severity="note" if workers.workers == 1 else None,
        )


def _called(held: HeldGenerator) -> str:
    return f"{held.holder}.{held.name}" if held.holder else f"the variable {held.name}"
