"""See `RepeatedWorkerRandomness`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.data import FrozenDraws, HeldGenerator, WorkerFacts
from diagnostics.facts.written import WrittenPatterns


class RepeatedWorkerRandomness(Rule):
    """All workers of a data loader, or all calls to a traced function, use the same random numbers.

    ## What it does
    Looks for NumPy, Python or PyTorch random generators that the dataset, a transform or the collator draws from,
    and that a loader copies into each of its worker processes. Also looks for a `worker_init_fn` that gives all
    workers the same seed, and for a `__getitem__` that seeds a global generator with the same number for every
    row.

    In TensorFlow, `diagnose run` looks for traced functions that draw from NumPy's or Python's random generators:
    a `train_step`, a `call`, a `tf.function`, or a function passed to `dataset.map`. It reports a generator that
    was used while the function was traced, but not in the calls that followed.

    ## Why it is bad
    Each worker gets a copy of the dataset and of its generator. All workers therefore draw the same sequence: with
    4 workers, you get only a quarter as many distinct augmentations. Unless the workers are persistent, every
    epoch repeats this sequence. PyTorch gives each worker a different seed only for the global generators:
    `torch`, `random` and `numpy.random`.

    TensorFlow runs the Python code of a traced function only once, and builds a graph from it. A random number
    from NumPy becomes a constant in this graph: every step uses the same negatives or the same noise, and a `map`
    flips either all images or none of them.

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
        # differs by worker and by epoch
        info.dataset.rng = np.random.default_rng(info.seed)

    loader = DataLoader(Photos(), num_workers=4, worker_init_fn=reseed)
    ```

    ## Thresholds
    With several workers, there is no threshold. A single worker is reported only if it is not persistent, and only
    as a note. A `__getitem__` is reported if it always seeds a global generator with the same value and then calls
    a function that draws noise. A function passed to `dataset.map` is reported if the dataset has at least 8
    elements, or if their number is unknown. Any other traced function is reported if at least 8 later calls drew
    no new numbers.

    ## Known problems
    The rule assumes that a generator is copied unless the code of its class or of `worker_init_fn` calls
    `get_worker_info` or `seed`, or assigns a new generator.

    ## Sources
    The documentation for `torch.utils.data`, "Randomness in multi-process data loading"; tensorflow/tensorflow,
    issue 40620; Tanel Pärnamaa, "Using PyTorch + NumPy? You're making a mistake" (2021), on NumPy's global
    generator before PyTorch 1.9.
    """

    severity = "warning"
    FIXES = {
        "torch": (
            "DataLoader(..., worker_init_fn=reseed), where reseed sets get_worker_info().dataset.rng = "
            "np.random.default_rng(get_worker_info().seed)",
            "use torch's random functions: PyTorch seeds them in each worker",
        ),
        "transformers": "use the random functions of torch or numpy.random: the Trainer seeds both in each worker",
    }

    @check
    def from_workers(self, workers: WorkerFacts) -> Finding | None:
        """Look for a generator that is copied into all workers or seeded alike in them."""
        if workers.workers == 1 and workers.persistent:
            return None
        if not workers.generators:
            return self._seeded_alike(workers) if workers.same_seed else None
        held = workers.generators[0]
        again = "" if workers.persistent else " Each epoch starts new workers with the same copies."
        if workers.workers == 1:
            drawn = (
                "The worker draws from a copy of this generator that is recreated for each epoch, so all epochs "
                "draw the same"
            )
            again = ""
        else:
            drawn = (
                f"Each of the {workers.workers} workers has a copy of this generator in the same state, so all "
                "workers draw the same"
            )
        return self.found(
            f"`{held.drawn_in}` draws from {_shown(held)}, a single {held.kind} for all rows. {drawn} "
            f"random numbers.{again} So the random augmentations repeat.",
            evidence={
                "workers": workers.workers,
                "persistent": workers.persistent,
                "generators": [_called(one) for one in workers.generators],
            },
            severity="note" if workers.workers == 1 else None,
        )

    def _seeded_alike(self, workers: WorkerFacts) -> Finding:
        alike = (
            "it produces the same random numbers in each epoch"
            if workers.workers == 1
            else f"all {workers.workers} workers draw the same random numbers"
        )
        again = "" if workers.persistent or workers.workers == 1 else ", and start over at each epoch"
        return self.found(
            f"`worker_init_fn` seeds `{workers.same_seed}` with a value that depends neither on the worker nor on "
            f"the epoch. The dataset draws from that generator, so {alike}{again}. So the random augmentations "
            "repeat.",
            fix=(
                "remove worker_init_fn: PyTorch then seeds torch, random and numpy.random differently in each "
                "worker",
                "np.random.seed(torch.initial_seed() % 2**32)  # differs by worker and by epoch",
            ),
            evidence={
                "workers": workers.workers,
                "persistent": workers.persistent,
                "seeded": workers.same_seed,
            },
            severity="note" if workers.workers == 1 else None,
        )

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Look for a seed that is the same for every row."""
        first = written.first("constant_seeds")
        if first is None:
            return None
        generator, seed, draw = first.names
        return self.found(
            f"`{first.where.function}` seeds `{generator}` with {seed} for every row, and then calls {draw}, "
            "which returns the same values for every row in every epoch. So all rows get the same noise. In the "
            "main process, everything else that draws from this generator, such as shuffling and dropout, is also "
            "reset with each row.",
            fix=(
                "seed once, before the dataset is created",
                "create a generator for each row: torch.Generator().manual_seed(index)",
                "np.random.default_rng((seed, epoch, index)), with NumPy",
            ),
            evidence={"generator": generator, "seed": seed, "draw": draw},
            where=first.where,
        )

    @check
    def from_traces(self, draws: FrozenDraws) -> Finding:
        """Report numbers that a traced function drew only once."""
        name = draws.where.function
        runs = "all" if draws.runs is None else f"{draws.runs:,}"
        seen, repeated = (
            (f"but in none of the {runs} calls that followed", "every step uses")
            if draws.runs_for == "call"
            else ("and the graph then runs without Python", f"{runs} elements of the dataset get")
        )
        replacement = "keras.random.uniform(...)" if draws.runs_for == "call" else "tf.random.uniform(...)"
        return self.found(
            f"`{name}` draws from `{draws.generator}` only once, while TensorFlow traces it: the state of this "
            f"generator changed during the trace, {seen}. So {repeated} the same random numbers.",
            fix=(
                f"{replacement}  # TensorFlow's random functions draw new numbers on every run of the graph",
                "use tf.numpy_function(draw, [], tf.float32), which calls a NumPy function on every run of the "
                "graph",
            ),
            evidence={"function": name, "generator": draws.generator, "for": draws.runs_for, "runs": draws.runs},
            where=draws.where,
        )


def _shown(held: HeldGenerator) -> str:
    return f"`{held.holder}.{held.name}`" if held.holder else f"the variable `{held.name}`"


def _called(held: HeldGenerator) -> str:
    return f"{held.holder}.{held.name}" if held.holder else f"the variable {held.name}"
