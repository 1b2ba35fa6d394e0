"""See `AugmentedEvaluation`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.inputs import EvaluationDraws

CHANGED = 0.2  # of the rows: a random flip changes half of them, rarer flips fewer
CHANGE = 0.05  # of the distance between rows: less is rounding noise, as in dequantised pixels
LIKENESS = 0.6  # correlation of a row with its earlier version: by chance up to 0.4 for 12 re-created rows
NEARER = 4.5  # standard deviations above chance, of strongly changed rows: re-created ones have up to 3
TURN = -0.2  # cosine of two consecutive changes: independent draws have -0.5


class AugmentedEvaluation(Rule):
    """Evaluation rows change from one evaluation to the next: training augmentation is on.

    ## What it does
    Compares part of the first batch across up to four evaluations. If a loader reads its dataset in order and the
    labels stay the same, the inputs should stay the same too.

    ## Why it is bad
    Crops, flips and noise make training harder on purpose. In evaluation, they make the model look worse than it
    is, and the metric varies at random between epochs, so the best epoch is chosen by chance. The usual
    cause is a single dataset split with `random_split` or `Subset`: both subsets have the same transform.

    ## Example
    ```python
    full = ImageFolder("data", transform=augment)
    train, validation = random_split(full, [0.8, 0.2])
    ```

    ## Instead
    ```python
    train = Subset(ImageFolder("data", transform=augment), train_indices)
    validation = Subset(ImageFolder("data", transform=plain), validation_indices)
    ```

    ## Thresholds
    At least 12 rows with class indices as labels must have been evaluated at least three times. All of these
    conditions must hold:

    - At least 20% of the rows have changed since the first evaluation, and the changes are at least 5% of the
      typical distance between two rows.
    - The change from the second to the third evaluation partly undoes the change from the first to the second: the
      cosine of the two changes is at most -0.2.
    - The values of a row, in sorted order, still identify the row.

    The sorted values identify the rows if one of these conditions holds:

    - In at least 10% of the rows, the sorted values did not change.
    - The sorted values of the first two evaluations, minus the mean of each row's class, have a correlation of at
      least 0.6.
    - Versions of the same row from different evaluations are more similar than random pairs within a class, by at
      least 4.5 standard deviations of such random pairs.

    The finding is a warning if the training rows come from the same underlying dataset. Otherwise it is a note,
    because the randomness may be intended.

    ## Known problems
    The rule covers only PyTorch `DataLoader` objects that do not shuffle, and does not compare token ids. An
    augmentation that leaves little of a row, such as a small crop of a large image, can go unnoticed.

    ## Sources
    Public reports of random crops and flips in validation: zoogzog/chexnet, issue 27;
    gpleiss/efficient_densenet_pytorch, issue 51.
    """

    severity = "warning"

    @check
    def from_rounds(self, draws: EvaluationDraws) -> Finding | None:
        """Compare the same rows in several evaluations."""
        if draws.changed < CHANGED or draws.change < CHANGE or draws.turn > TURN or not _same_rows(draws):
            return None
        beneath = (
            " The training rows come from the same dataset and get the same transform." if draws.shared else ""
        )
        return self.found(
            f"The same {draws.rows} evaluation rows, with the same labels, had different values across "
            f"{draws.rounds} evaluations: {draws.changed:.0%} of the rows changed, by {draws.change:.0%} of the "
            "typical distance between two rows. The changes are random, like those of data "
            f"augmentation.{beneath} So the metric is computed on randomly altered rows, and varies between "
            "evaluations.",
            fix=(
                "evaluate on a separate dataset without the random transform: "
                "Subset(MyDataset(transform=plain), indices)",
            ),
            evidence=vars(draws),
            severity=None if draws.shared else "note",
        )


def _same_rows(draws: EvaluationDraws) -> bool:
    """Return whether each row still shows which row it was, and is not re-created."""
    return draws.likeness >= LIKENESS or draws.nearer >= NEARER
