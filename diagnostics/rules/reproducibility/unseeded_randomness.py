"""See `UnseededRandomness`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.trials import ReproductionFacts
from diagnostics.text.join import count_of

ROUNDING = 1e-4  # of the largest value: the effect of summation order in float32 after a few layers


class UnseededRandomness(Rule):
    """The same training step, run twice from the same state, gives different results.

    ## What it does
    Runs only on request, with `examine(..., check_reproducible=True)`. Performs one training step twice, each time
    on a new copy of the model with the same rows and seeds, and compares the batches, layer outputs, losses and
    gradients bit for bit.

    ## Why it is bad
    A run that cannot be reproduced is hard to debug: the effect of a change cannot be distinguished from chance.
    Seeding at the top of a script affects only the generators that are seeded there.

    ## Example
    ```python
    torch.manual_seed(0)

    class Noise(torch.nn.Module):
        def forward(self, states):
            # a new seed from the system each time
            noise = np.random.default_rng().normal(size=states.shape)
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
    None: a difference of one bit is enough. If the first difference is less than 1e-4 times the largest value in
    the tensor, the finding attributes it to an operation without a fixed order of summation. Otherwise, it
    attributes the difference to random numbers.

    ## Known problems
    Generators that were created with a seed are reset before each of the two steps. A NumPy generator is treated
    as unseeded if its seed has 64 bits of entropy or more, as a seed from the operating system does. Worker
    processes and Keras are not checked.

    ## Sources
    PyTorch's notes, "Reproducibility"; NumPy's documentation for `numpy.random.default_rng` and `SeedSequence`.
    """

    severity = "note"

    @check
    def from_reproduction(self, reproduction: ReproductionFacts) -> Finding | None:
        """Name the first tensor that differs between the two steps."""
        if reproduction.first is None:
            return None
        difference, largest = reproduction.difference, reproduction.largest
        by = (
            ""
            if difference is None
            else f": it differs by up to {difference:.2g}, and its values reach {largest:.2g}"
        )
        rounding = bool(difference is not None and largest and difference <= ROUNDING * largest)
        differing, compared = reproduction.differing, reproduction.compared
        which = "All" if differing == compared else f"{differing:,} of the"
        after = f". {which} {compared:,} compared tensors differ" if differing > 1 else ""
        return self.found(
            "Running one training step twice with the same weights, rows and seeds gave different results. The "
            f"first difference is in {reproduction.first}{by}{after}. {_why(reproduction, rounding)}",
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
        return "A difference this small comes from an operation that does not sum in a fixed order."
    if reproduction.unseeded:
        count = reproduction.unseeded
        were, them = ("was", "it") if count == 1 else ("were", "them")
        return (
            f"The program has {count_of(count, 'generator')} that {were} apparently created without a seed (an "
            "explicit 128-bit seed would look the same). A seed at the top of the script does "
            f"not affect {them}."
        )
    return "The random numbers come from a source without a fixed seed, such as a new generator or the clock."


def _fix(reproduction: ReproductionFacts, rounding: bool) -> str:
    if rounding:
        return (
            "torch.use_deterministic_algorithms(True)  # uses a deterministic version, or raises an error that "
            "names the operation"
        )
    if reproduction.first is not None and reproduction.first.startswith("the batch"):
        return "create the generator once, with a seed: self.random = np.random.default_rng(seed)"
    return "draw from PyTorch's global generator, which torch.manual_seed seeds: torch.randn_like(states)"
