"""See `RanksShareRandomness`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.notes import JoinedNotes, RankNotes
from diagnostics.text.join import listed

FEWEST_STEPS = 3
FEWEST_BATCHES = 4  # in an epoch: a loader draws a seed at its start, which would look the same
GENERATORS = {"torch": "torch", "cuda": "torch.cuda", "numpy": "numpy.random", "random": "random"}


class RanksShareRandomness(Rule):
    """The ranks draw the same random numbers for different rows.

    ## What it does
    Under `diagnose run` with several processes, the rule compares the state of the global random generators
    between ranks, after optimizer steps 0, 1, 2, 4, 8 and so on. The states are compared only if random numbers
    were drawn between two forward passes, for example for noise, diffusion time steps, mixup or augmentation.

    ## Why it is bad
    All ranks add the same noise, and make the same crops and flips. Averaging the gradients over the ranks then
    does not reduce the variance that the noise causes.

    ## Example
    ```python
    torch.manual_seed(42)                       # on every rank
    noisy = inputs + torch.randn_like(inputs)
    ```

    ## Instead
    ```python
    torch.manual_seed(42 + dist.get_rank())     # after creating the model
    noisy = inputs + torch.randn_like(inputs)
    ```

    ## Thresholds
    At least three steps must have been compared, and in each of them all ranks must have used the same RNG state
    even though their rows differed.

    ## Known problems
    The finding is a note, because sharing random numbers may be intended. Random numbers drawn by loader workers
    or by dropout are not compared.

    ## Sources
    github.com/facebookresearch/detr/issues/297 (why the seed is shifted by the rank); the documentation for
    `accelerate.utils.set_seed` (device_specific).
    """

    severity = "note"

    @check
    def from_ranks(self, joined: JoinedNotes) -> Finding | None:
        """Compare the generators' states."""
        ranks = [notes for _, notes in sorted(joined.ranks.items()) if notes.samples]
        steps = sorted(set.intersection(*(set(notes.samples) for notes in ranks))) if ranks else []
        drawn = [step for step in steps if all(notes.samples[step].drawn for notes in ranks)]
        if len(ranks) < 2 or len(drawn) < FEWEST_STEPS or any(_is_short(notes) for notes in ranks):
            raise NotApplicable(
                "needs two ranks that train the same model and draw random numbers between its forward passes"
            )
        rows = [tuple(notes.samples[step].rows for step in drawn) for notes in ranks]
        same = [name for name in GENERATORS if all(_is_same(ranks, step, name) for step in drawn)]
        if not same or len(set(rows)) < len(rows):
            return None
        named = [GENERATORS[name] for name in same]
        return self.found(
            f"Ranks {listed(notes.number for notes in ranks)} got different rows, but drew the same random "
            f"numbers from {listed(named)} between their forward passes at each of the {len(drawn)} steps "
            "compared. Noise, time steps or augmentations are therefore the same on every rank.",
            fix=(
                "call torch.manual_seed(SEED + dist.get_rank()) after the model is created",
                "with Accelerate, call set_seed(SEED, device_specific=True)",
                "change nothing, if all ranks are meant to draw the same numbers",
            ),
            evidence={"generators": named, "steps": drawn, "ranks": [notes.number for notes in ranks]},
        )


def _is_short(notes: RankNotes) -> bool:
    return any(one.batches < FEWEST_BATCHES for one in notes.iterations if one.ended)


def _is_same(ranks: list[RankNotes], step: int, name: str) -> bool:
    states = {notes.samples[step].drawn.get(name) for notes in ranks}
    return len(states) == 1 and None not in states
