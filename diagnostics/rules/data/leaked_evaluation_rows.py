"""See `LeakedEvaluationRows`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts, FitData, HeldOutBefore, ShuffledSplit, SplitFacts
from diagnostics.facts.inputs import InputFacts
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.metrics import MetricCall, MetricLedger
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.shared.near_copies import near_copies
from diagnostics.text.join import among, capitalized, listed

SHARE = 0.01  # our choice: with this many, a reported score can be off by a percentage point
MIN_SHARED = 5  # our choice: fewer equal rows may be chance
ALL = 0.9  # our choice: if a new row is a duplicate with this probability, all new rows may well be
OVERLAPPING = 0.5  # our choice: of the evaluation rows; after a split in time, none ends in a training window
COPIED = 0.1  # our choice: of the evaluation rows, for measurements, which never repeat by nature
MIN_PAIRS = 20
SHARED_PAIRS = 0.1  # of the evaluated pairs, with their ids swapped
BOTH_WAYS = 0.8  # of the evaluated pairs: with fewer, the direction of a pair may mean something
NATURAL = 2.0  # times the share explained by duplicates in the training set, counted on a few hundred rows


class LeakedEvaluationRows(Rule):
    """Evaluation rows are also in the training set.

    ## What it does
    Counts the evaluation rows that are also in the training set.

    It also looks for near-duplicates in samples of the training and evaluation inputs: rows that were copied with
    small changes before the split, or several rows of the same subject.

    `diagnose run` also searches the script for held-out data that is never used because the evaluation reads the
    training data instead, such as `val_accuracy = evaluate(model, train_loader)`. With `tf.data`, it checks
    whether `take` and `skip` split a dataset that is reshuffled on every iteration. For a Keras model that is
    fitted several times, it checks whether the evaluation rows were used in an earlier fit, as happens when all
    folds of a cross-validation train the same model. In link prediction, it checks whether the evaluation pairs
    also occur in training, with their two ids swapped.

    ## Why it is bad
    The model may have memorised the rows that it was trained on, so the score is too high. Overfitting looks like
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
    At least 1% of the compared evaluation rows, and at least 5 of them, must be in the training set. Overlapping
    windows are reported if at least half of the evaluation windows contain the same values as training windows,
    shifted by a few time steps.

    If few distinct rows are possible, some evaluation rows occur in the training set by chance. The rule estimates
    their share from the number of duplicates within the training set. The finding is a note if the share of leaked
    rows is at most twice this estimate, or if the training set contains most of the possible rows. If all
    evaluation rows are in the training set, the finding is a note only if the estimate is at least 90%.

    A model that is fitted several times is reported if three conditions hold:

    - Two evaluations follow two different fits, whose training sets share rows.
    - At least 90% of the evaluation rows were used in earlier fits, but none of them in the latest fit.
    - Each fit starts from the weights of the previous fit.

    Up to 4,096 rows with at least 4 columns are recognised even if each column is scaled and shifted differently
    for each fit, as with a scaler that is refitted in each fold.

    For swapped pairs, the rule checks the positive pairs passed to scikit-learn's `roc_auc_score` or
    `average_precision_score` against the pairs that the first loss compares. The pairs are reported if these
    conditions hold:

    - At least 20 of the positive pairs (and at least 10%) occur in the loss with their ids swapped, and at most 1%
      occur there with their ids in the same order.
    - For at least 80% of the positive pairs, the swapped pair occurs in the loss or in the evaluation. Otherwise,
      the graph may be directed.

    Rows are checked for near-duplicates only if at least 5 of their numbers hardly ever repeat in other rows.
    Near-duplicates are reported if these conditions hold:

    - At least 10% of the evaluation rows compared, and at least 40 of them, have near-duplicates in the training
      set. An evaluation row's nearest training rows (at most 8) count as its near-duplicates if the next training
      row is at least 2.5 times as far away. Each number is first replaced by its rank, so the scale of an input
      does not matter.
    - The share of evaluation rows with near-duplicates is at least 10 times the share expected by chance, which
      the rule estimates from more distant neighbours.
    - Hardly any distance between a training row and an evaluation row falls into the gap between near-duplicates
      and other rows.
    - Pairs within a training batch, or within the evaluation, are near-duplicates about as often as pairs of a
      training row and an evaluation row. This holds if rows were copied before a random split, but not if the
      training rows are augmented in each epoch.
    - There are more than twice as many groups of near-duplicates as the model has outputs. Fewer groups may simply
      be the classes.

    ## Known problems
    Some duplicates are natural: short texts ("thank you"), tables with few columns, blank images. Rows that were
    copied before the split to balance the classes look like natural duplicates but are a real leak.
    Near-duplicates are not detected if they are texts, 8-bit images (such as different crops), rows with few
    numbers, or rows interpolated between others (SMOTE). If the training set is large, only part of it is
    compared, so the true number of leaked rows is higher, and near-duplicates may go unnoticed. Rows clustered
    around more than a hundred prototypes look like near-duplicates, unless the prototypes are the classes. If only
    a variable name in the script shows which data is held out, the finding is a note. Swapped pairs are found only
    in PyTorch, and only if the first batch contains most of the pairs in the training set.

    ## Sources
    Katherine Lee et al., "Deduplicating Training Data Makes Language Models Better" (2022), on train-test overlap
    in common datasets; scikit-learn's documentation, "Common pitfalls", on data leakage.
    """

    severity = "warning"

    @check
    def from_splits(self, splits: SplitFacts, dataset: DatasetFacts | None = None) -> Finding | None:
        """Compare the number of shared rows with the number that chance explains."""
        compared = splits.evaluation_rows
        if not compared or not splits.training_rows:
            raise NotApplicable("needs rows from both the training and the evaluation set")
        if not splits.compared:
            raise NotApplicable("needs columns that the training and the evaluation set have in common")
        shared = splits.shared
        if shared < OVERLAPPING * compared <= splits.overlapping:
            return self._windows(splits)
        if shared < MIN_SHARED or shared < SHARE * compared:
            return None
        covered = _covered_share(splits)
        natural = max(covered, _repeated_share(splits), _natural_share(splits.training_rows, dataset))
        expected = natural >= ALL if shared == compared else shared <= NATURAL * natural * compared
        copied = expected and natural > covered and splits.fractions and shared >= COPIED * compared
        if not expected:
            why = (
                "The model is trained on these rows, so the evaluation score is higher than it would be on new "
                "data."
            )
        elif copied:
            why = (
                "Duplicates are just as common within the training set, and continuous values like these do not "
                "repeat by chance, so rows were duplicated before the split. The model is trained on these "
                "rows, so the evaluation score is higher than it would be on new data."
            )
        elif natural == covered:
            held = splits.distinct_training_rows
            contained, new = ("all", "no row") if held == splits.possible_rows else (f"{held:,}", "few rows")
            why = (
                f"The values of these inputs allow only {splits.possible_rows:,} distinct rows, and the training "
                f"set contains {contained} of them, so {new} can be new to the model."
            )
        else:
            why = (
                "Duplicates are about as frequent within the training set, so these may be natural duplicates "
                "or rows copied before the split."
            )
        partial = splits.training_size is None or splits.training_rows < splits.training_size
        which = f"all {compared:,}" if shared == compared else f"{shared:,} of the {compared:,}"
        rate = "" if shared == compared else f" ({shared / compared:.1%})"
        return self.found(
            f"{capitalized(which)} evaluation rows compared{rate} are also in the training set, with the same "
            f"{_columns(splits.compared)}.{_how_much(splits) if partial else ''} {why}",
            fix=(
                "split the rows before training: train_test_split(..., test_size=0.1)"
                if shared == compared
                else (
                    "split once, with a seed, before you augment or copy rows",
                    "remove these rows from one of the two sets",
                )
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
            severity="note" if expected and not copied else None,
        )

    def _windows(self, splits: SplitFacts) -> Finding:
        share = splits.overlapping / splits.evaluation_rows
        return self.found(
            f"{capitalized(among(splits.overlapping, splits.evaluation_rows, 'evaluation row'))} compared "
            f"({share:.0%}) "
            "are windows of a series that overlap windows in the training set: they contain the same "
            "values, shifted by a few steps. The model is trained on these values and on the values that "
            "follow them, so the evaluation score is higher than it would be on new data.",
            fix=(
                "split the series by time first, then cut each part into windows",
                "leave a gap of one window length between training and evaluation",
            ),
            evidence={
                "overlapping": splits.overlapping,
                "evaluation_rows": splits.evaluation_rows,
                "training_rows": splits.training_rows,
            },
        )

    @check
    def from_inputs(self, inputs: InputFacts) -> Finding | None:
        """Compare the distance to the nearest training row with that to the nearest one that is not a copy."""
        found = near_copies(inputs)
        if found is None:
            return None
        return self.found(
            f"{found.near:,} of the {found.rows:,} evaluation rows compared ({found.near / found.rows:.0%}) are "
            f"near-copies of training rows: the nearest training row is {found.distance:.1%} as far away as the "
            "nearest row that is not a copy (median). Rows of the same set are near-copies of each other about as "
            f"often ({found.pairs:,} pairs), so rows were copied and changed slightly, or subjects were recorded "
            "several times, before the split. The model is trained on nearly the same rows, so the evaluation "
            "score is higher than it would be on new data.",
            fix=(
                "split first, then augment or oversample only the training rows",
                "keep all rows of one subject in the same set: GroupShuffleSplit().split(x, y, groups)",
            ),
            evidence={
                "near": found.near,
                "evaluation_rows": found.rows,
                "training_rows": found.training_rows,
                "distance": round(found.distance, 4),
                "by_chance": round(found.by_chance, 6),
                "pairs": found.pairs,
                "expected_pairs": round(found.expected, 1),
            },
        )

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Look for an evaluation on the training data while the held-out data is never used."""
        first = written.first("unread_splits")
        if first is None:
            return None
        unread, instead, reader, how = first.names
        read = f"`{instead}`, which the model is trained on"
        seen, fix = {
            "made": (
                f"`{reader}` is built from {read}, while `{unread}` is held out but never used",
                f"{reader} = DataLoader({unread}, ...)",
            ),
            "computed": (
                f"`{reader}` is computed from {read}, while `{unread}` is never used",
                f"evaluate on {unread}, not on {instead}",
            ),
            "iterated": (
                f"{reader}() iterates over {read}, and never uses the `{unread}` passed to it",
                f"iterate over the held-out data: for batch in {unread}:",
            ),
        }[how]
        return self.found(
            f"{seen}. So all evaluation rows are also in the training set.",
            fix=fix,
            evidence={"loader": reader, "read": instead, "unread": unread},
            where=first.where,
            severity=first.severity,
        )

    @check
    def from_pipeline(self, split: ShuffledSplit) -> Finding | None:
        """Report a split of a shuffle that is redrawn for each side and each epoch."""
        return self.found(
            f"The training and validation sets are split with .{split.training}() and .{split.validation}() after "
            "shuffle(), which draws a new order for each iteration. So the validation rows change in each "
            "epoch and are not excluded from training. Over the epochs, the model is trained on most validation "
            "rows, so the validation score is higher than it would be on new data.",
            fix=(
                "split first, then shuffle: train = data.skip(n).shuffle(size), validation = data.take(n)",
                "data.shuffle(size, seed=0, reshuffle_each_iteration=False)  # the same order in every epoch",
            ),
            evidence={"training": split.training, "validation": split.validation},
        )

    @check
    def from_same(self, data: FitData) -> Finding:
        """Report an object that serves as both training and validation data."""
        if not data.validates:
            raise NotApplicable("needs an object that is also the validation data")
        return self.found(
            f"fit() got the same {data.kind} for training and for validation_data: all evaluation rows are "
            "also in the training set, so the validation score says nothing about new data.",
            fix="pass validation_data=val_ds, with rows that are held out before training",
            evidence={"kind": data.kind},
        )

    @check
    def from_folds(self, held: HeldOutBefore) -> Finding:
        """Report folds whose rows were in an earlier training of the same model."""
        return self.found(
            f"The {held.rows:,} rows of an evaluation were held out of this model's latest training run, but "
            f"{held.seen:,} of them were used in an earlier one ({held.trainings} training runs in all), and "
            f"the model kept its weights. This happened after {held.evaluations} training runs: the folds of a "
            "cross-validation seem to train the same model, so each fold is tested on rows that the model "
            "was trained on.",
            fix=(
                "call model = build_model() in each fold, and recompile the model before fitting it",
                "save first = model.get_weights() before the folds; then call model.set_weights(first) and "
                "model.compile(...) in each fold",
            ),
            evidence={
                "trainings": held.trainings,
                "evaluations": held.evaluations,
                "rows": held.rows,
                "seen": held.seen,
            },
        )

    @check
    def from_pairs(self, graph: LossGraph, metrics: MetricLedger) -> Finding | None:
        """Look for pairs that are scored in training one way round, and in evaluation the other."""
        held = [(call, pairs) for call in metrics.calls for pairs in call.pairs]
        if not graph.pairs or not held:
            raise NotApplicable("needs pairs of ids that a loss and a metric are about")
        trained = np.concatenate(graph.pairs)
        ids = 1 + max(int(pairs.max()) for pairs in (trained, *(pairs for _, pairs in held)))
        known = _codes(trained, ids)
        for call, pairs in held:
            forth, back = _codes(pairs, ids), _codes(pairs[:, ::-1], ids)
            turned = (pairs[:, 0] != pairs[:, 1]) & np.isin(back, known)
            shared, either = int(turned.sum()), np.isin(back, np.concatenate([known, forth])).mean()
            if shared < max(MIN_PAIRS, SHARED_PAIRS * len(pairs)) or either < BOTH_WAYS:
                continue
            if np.isin(forth, known).mean() <= SHARE:
                return self._turned(call, shared, len(pairs))
        return None

    def _turned(self, call: MetricCall, shared: int, pairs: int) -> Finding:
        return self.found(
            f"{shared:,} of the {pairs:,} positive pairs of an evaluation ({shared / pairs:.0%}) are also in the "
            "training set with their ids swapped: (v, u) is trained on where (u, v) is evaluated. The pairs are "
            "stored in both directions, and the split has put the two directions on different sides. The model is "
            "trained on the answers, so the evaluation score is higher than it would be on new pairs.",
            fix=(
                "split each pair once, then add the other direction to the training side: "
                "pairs = pairs[pairs[:, 0] < pairs[:, 1]]",
                "RandomLinkSplit(is_undirected=True)  # in PyTorch Geometric",
            ),
            evidence={"shared": shared, "evaluation_rows": pairs, "metric": call.metric},
            where=call.where,
        )


def _codes(pairs: Array, ids: int) -> Array:
    """Return a number for each pair of ids (n, 2), in their order."""
    codes: Array = pairs[:, 0].astype(np.int64) * ids + pairs[:, 1]
    return codes


def _covered_share(splits: SplitFacts) -> float:
    """Return the share of all possible rows that is in the training set; 0 if not known."""
    if not splits.possible_rows or splits.distinct_training_rows is None:
        return 0.0
    return splits.distinct_training_rows / splits.possible_rows


def _repeated_share(splits: SplitFacts) -> float:
    """Estimate the share of new rows that is in the training set, from the duplicates among the rows compared."""
    if not splits.distinct_training_rows:
        return 0.0
    return -math.expm1(-_draws_of_each(splits.distinct_training_rows / splits.training_rows))


def _natural_share(training_rows: int, dataset: DatasetFacts | None) -> float:
    """Estimate the share of new rows that is in the training set, from the duplicates within that set."""
    if dataset is None or dataset.distinct_rows is None or dataset.rows_read < 2 or not dataset.spread_out:
        return 0.0
    return 1 - math.exp(
        -training_rows / dataset.rows_read * _draws_of_each(dataset.distinct_rows / dataset.rows_read)
    )


def _draws_of_each(distinct: float) -> float:
    """Return n / k, how often each of k equally common rows is drawn in n draws, from the distinct share.

    n draws find k (1 - exp(-n / k)) of the k rows; `distinct` is that number divided by n.
    """
    low, high = 0.0, 1 / distinct
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-middle) > distinct * middle else (low, middle)
    return low


def _how_much(splits: SplitFacts) -> str:
    size = "" if splits.training_size is None else f" of {splits.training_size:,}"
    return f" Only {splits.training_rows:,}{size} training rows were compared, so there may be more such rows."


def _columns(columns: tuple[str, ...]) -> str:
    if all(name.isdigit() for name in columns):
        return "input" if len(columns) == 1 else "inputs"
    return listed(columns)
