"""See `LeakedEvaluationRows`."""

from __future__ import annotations

import math

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import DatasetFacts, SplitFacts

SHARE = 0.01  # ours: from here on a reported score can be off by a point
MIN_SHARED = 5  # ours: a handful of equal rows is an accident
ALL = 0.9  # ours: where a new row is seen as probably as this, it is no surprise that all of them are
NATURAL = 2.0  # times what the repetitions within the training set explain; they are counted on a few hundred rows


class LeakedEvaluationRows(Rule):
    """Rows that the model is judged by also stand in the training set.

    ## What it does
    Compares the content of evaluation rows, labels left out, with that of training rows, and counts the
    evaluation rows that were found among them.

    ## Why it is bad
    The evaluation is there to say how the model does on what it has not seen. Rows that it was trained on it
    may know by heart, so the score is too good, and the more so the longer it trains: overfitting looks like
    progress.

    ## Example
    ```python
    rows = rows.map(augment).shuffle(seed=0)
    train, evaluation = rows, rows.select(range(1000))
    ```

    ## Instead
    ```python
    halves = rows.train_test_split(test_size=0.1, seed=0)    # split first
    train, evaluation = halves["train"].map(augment), halves["test"]
    ```

    ## Thresholds
    At least 1% of the evaluation rows compared, and at least 5 of them (ours): from there on the leak can move a
    score by a point, and it is no longer an accident of one or two rows.

    Rows that repeat within the training set also turn up outside it. If two of m rows read from all over it are
    equal with probability q, a new row stands among N training rows with probability 1 - exp(-Nq), if all rows
    are equally common. Up to twice that share (ours, for the few repetitions in a few hundred rows) the finding
    is only a note. So it is where the inputs can form few different rows, as 9 bits form 512, and the training
    set holds most of them: its share of them is the share of new rows that it holds. That all evaluation rows
    were found is only expected if the estimated share is 90% (ours).

    ## Known problems
    Duplicates occur naturally: short texts ("thank you"), tables with few columns, blank images. If two people
    wrote the same sentence, its being in both sets is no mistake; whether it should count is yours to say. Rows
    copied before the split, to balance classes, look the same and are a mistake: read the note.
    Rows that are nearly the same (another crop, a changed blank) are not found. A large training set is
    compared in part, and then the true number is higher.

    ## Sources
    Katherine Lee et al., "Deduplicating Training Data Makes Language Models Better" (2022), on train-test
    overlap in common datasets; scikit-learn's documentation, "Common pitfalls", on data leakage.
    """

    severity = "warning"

    @check
    def from_splits(self, splits: SplitFacts, dataset: DatasetFacts | None = None) -> Finding | None:
        """Look at how many evaluation rows were found among the training rows."""
        compared = splits.evaluation_rows
        if not compared or not splits.training_rows:
            raise NotApplicable("needs rows of both the training and the evaluation set")
        if not splits.compared:
            raise NotApplicable("needs columns that both sets have")
        shared = splits.shared
        if shared < MIN_SHARED or shared < SHARE * compared:
            return None
        covered = _covered_share(splits)
        natural = max(covered, _natural_share(splits.training_rows, dataset))
        expected = natural >= ALL if shared == compared else shared <= NATURAL * natural * compared
        if not expected:
            why = (
                "The model has seen them, so the evaluation says less about what it will do with new data than it "
                "seems to."
            )
        elif natural == covered:
            why = (
                f"The values of these inputs form {splits.possible_rows:,} different rows, and the training set "
                f"holds {splits.distinct_training_rows:,} of them: few rows can be new to the model."
            )
        else:
            why = (
                "The training rows repeat each other about as often, so these may be duplicates that occur by "
                "themselves; or rows were copied before the split."
            )
        partial = splits.training_size is None or splits.training_rows < splits.training_size
        which = f"all {compared:,}" if shared == compared else f"{shared:,} of the {compared:,}"
        rate = "" if shared == compared else f" ({shared / compared:.1%})"
        return self.found(
            f"{which[0].upper()}{which[1:]} evaluation rows compared{rate} also stand in the training "
            "set, with the "
            f"same {_listed(splits.compared)}.{_how_much(splits) if partial else ''} " + why,
            fix=(
                "evaluation and training hold the same rows: split them first, train_test_split(test_size=0.1)"
                if shared == compared
                else "split once, with a seed, before rows are augmented or copied; or take these out of one set"
            ),
            evidence={
                "shared": shared,
                "evaluation_rows": compared,
                "evaluation_size": splits.evaluation_size,
                "training_rows": splits.training_rows,
                "training_size": splits.training_size,
                "compared": list(splits.compared),
                "natural_share": round(natural, 4),
            },
            severity="note" if expected else None,
        )


def _covered_share(splits: SplitFacts) -> float:
    """Return the share of all rows that the inputs can form that stands in the training set; 0 if not known."""
    if not splits.possible_rows or splits.distinct_training_rows is None:
        return 0.0
    return splits.distinct_training_rows / splits.possible_rows


def _natural_share(training_rows: int, dataset: DatasetFacts | None) -> float:
    """Estimate which share of new rows stands among the training rows, from how often those repeat each other."""
    if dataset is None or dataset.distinct_rows is None or dataset.rows_read < 2 or not dataset.spread_out:
        return 0.0
    repeated = dataset.rows_read - dataset.distinct_rows
    equal = 2 * repeated / (dataset.rows_read * (dataset.rows_read - 1))
    return 1 - math.exp(-training_rows * equal)


def _how_much(splits: SplitFacts) -> str:
    size = "" if splits.training_size is None else f" of {splits.training_size:,}"
    return f" Only {splits.training_rows:,}{size} training rows were compared; there may be more."


def _listed(columns: tuple[str, ...]) -> str:
    if all(name.isdigit() for name in columns):
        return "input" if len(columns) == 1 else "inputs"
    return columns[0] if len(columns) == 1 else f"{', '.join(columns[:-1])} and {columns[-1]}"
