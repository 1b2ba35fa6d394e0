"""See `UnseededRandomness`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.trials import ReproductionFacts

ROUNDING = 1e-4  # of the largest value: what the order of a sum in single precision leaves after a few layers


class UnseededRandomness(Rule):
    """The same training step, made twice from the same state, comes out differently.

    ## What it does
    Only on request, `examine(..., check_reproducible=True)`: makes one step twice, each time on a new copy of the
    model, with the same rows and all seeds set alike, and compares batch, layers, loss and gradients bit for bit.

    ## Why it is bad
    A run that cannot be made again cannot be debugged: a change that helps looks like a lucky draw, and a lucky
    draw like a change that helps. Setting the seeds at the top of a script is meant to prevent that, but reaches
    only the generators that it names.

    ## Example
    ```python
    torch.manual_seed(0)

    class Noise(torch.nn.Module):
        def forward(self, states):
            noise = np.random.default_rng().normal(size=states.shape)      # from the system, each time
            return states + torch.from_numpy(noise)
    ```

    ## Instead
    ```python
    torch.manual_seed(0)

    class Noise(torch.nn.Module):
        def forward(self, states):
            return states + torch.randn_like(states)
    ```

    ## Thresholds
    None: one bit is enough. If the first difference is under 1e-4 of the largest value there (ours), it is put
    down to an operation that adds up in an order of its own, and otherwise to random numbers.

    ## Known problems
    Generators that somebody made with a seed are put back before each of the two steps. A NumPy generator counts
    as made without one if it keeps 64 bits of entropy or more: that is what NumPy draws from the system, and what
    its documentation advises to write down as a seed. Whether one of Python's own, or of PyTorch's, was seeded
    from the clock cannot be seen. Worker processes are not asked. Keras is not asked either.

    ## Sources
    PyTorch's notes, "Reproducibility"; NumPy's documentation of `numpy.random.default_rng` and `SeedSequence`.
    """

    severity = "note"
    no_exhibit = "a run that cannot be made again trains as well as any other: there is no failure to show"

    @check
    def from_reproduction(self, reproduction: ReproductionFacts) -> Finding | None:
        """Say where the two steps part."""
        if reproduction.first is None:
            return None
        difference, largest = reproduction.difference, reproduction.largest
        by = "" if difference is None else f", by up to {difference:.2g} where values go up to {largest:.2g}"
        rounding = bool(difference is not None and largest and difference <= ROUNDING * largest)
        others = reproduction.differing - 1
        after = f", and after it {others:,} of the {reproduction.compared:,} tensors compared" if others else ""
        return self.found(
            "One training step was made twice from the same weights, the same rows and the same seeds, and came "
            f"out differently. The first to differ is {reproduction.first}{by}{after}. "
            f"{_why(reproduction, rounding)}",
            fix=_fix(reproduction, rounding),
            evidence={
                "first": reproduction.first,
                "difference": difference,
                "largest": largest,
                "differing": reproduction.differing,
                "compared": reproduction.compared,
                "unseeded_generators": reproduction.unseeded,
            },
        )


def _why(reproduction: ReproductionFacts, rounding: bool) -> str:
    if rounding:
        return "So little comes of an operation that adds up in an order of its own, not of random numbers."
    if reproduction.unseeded:
        count = reproduction.unseeded
        own = "a generator of its own that was" if count == 1 else f"{count} generators of its own that were"
        return (
            f"The program has {own} made without a seed (or with one as long as those that NumPy draws from "
            "the system), so no seed at the top of a script reaches it."
        )
    return (
        "Random numbers are drawn there from a source that no seed reaches, such as a new generator or the clock."
    )


def _fix(reproduction: ReproductionFacts, rounding: bool) -> str:
    if rounding:
        return "torch.use_deterministic_algorithms(True) names the operation, or takes another"
    if reproduction.first is not None and reproduction.first.startswith("the batch"):
        return "make the generator once, with a seed: self.random = np.random.default_rng(seed)"
    return "draw from PyTorch's own generator, torch.randn_like(states), which torch.manual_seed sets"
