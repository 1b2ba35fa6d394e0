"""See `LabelsUnrelated`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import RepeatedRows, TargetHistory
from diagnostics.facts.data import UnpairedRows
from diagnostics.facts.pipeline import BatchFacts, ModelFacts, OutputFacts
from diagnostics.facts.written import CutTargets, WrittenFacts

ROWS = 32  # different ones that came again
DEVIATIONS = (
    2.0  # above the share of targets that stay where all are dealt out again: noisy labels stay more often
)
APART = 0.8  # of the changes that dealing out again would bring, squared: several people's labels are closer
NEARBY = 0.9  # of the difference between any two targets: neighbours are closer in each task of meta-learning
OF_OTHERS = 0.25  # of the changed targets: others are re-created, as a teacher's or those of Q-learning
LEARNED = 0.95  # of a constant prediction's loss
TAGGED, TAGS = 8, 4  # rows with a tag for each token, and tags of a row
DIFFERENT = 0.1  # of the rows, whose first token has another tag than most: a start token says nothing of its own
TAIL = 4  # one in so many tokens of a row, at its end


class LabelsUnrelated(Rule):
    """Inputs and targets are brought together in different orders.

    ## What it does
    Follows some rows of the training inputs through the run, recognised by what they hold, and compares the
    target that each has when it comes again with that of its first time. Rows that repeat by nature, such as
    those of a few categories, are left out. If the targets change about as often as if they were dealt out
    again, and are those of other rows, then inputs and targets are brought together wrongly. Under `diagnose
    run` it also reads the script for inputs and targets that are shuffled one after the other, each in place,
    with one generator that is not seeded again in between; and for inputs that are filtered by what they hold
    while their targets are cut to the same length. Of a model that tags tokens it looks at a batch: whether
    the start token has several tags, and the ends of the rows one at most. Of the first batch it compares the
    rows that the model got with the examples that the collator got, or with the batch of the loader: whether the
    inputs were put into another order, and the targets not.

    ## Why it is bad
    Targets that have nothing to do with their rows cannot be learned: the loss ends where a constant prediction
    is. Usually one of the two is shuffled and the other is not, or each has an order of its own.

    ## Example
    ```python
    order = torch.randperm(len(x))
    for i in range(0, len(x), 64):
        loss = criterion(model(x[order[i:i + 64]]), y[i:i + 64])
    ```

    ## Instead
    ```python
    order = torch.randperm(len(x))
    for i in range(0, len(x), 64):
        rows = order[i:i + 64]
        loss = criterion(model(x[rows]), y[rows])
    ```

    ## Thresholds
    At least 32 rows that came again, and hardly one of them twice within an epoch; no more of the targets stay
    than two standard deviations above what dealing out again leaves, and the changes have 80% of the mean
    square that it would bring: noisy labels, or those of several people, stay below. A quarter of the changed
    targets must be known from other rows. Within a batch, neighbouring rows must have targets that differ 90%
    as much as those of any two: in few-shot training each episode has targets of its own, which go with its
    rows. In PyTorch also a loss of at least 95% of a constant prediction's. Tags: in a batch of 8 rows or
    more, 10% or more of the start tokens have another tag than most of them, while all tokens in the last
    quarter of every row have the same tag, or one that is ignored. The numbers are ours. In the first batch: 8
    rows or more, of which each can be told from all others, and the loss gets the same targets as the examples
    have, of which two or more stand at rows that have another one.

    ## Known problems
    Rows that are augmented differ each time and cannot be followed, and pictures drawn with replacement are taken
    for rows that repeat by nature; measurements, of which each row has values of its own, are not. A Keras model
    with a train_step of its own is not judged: it may want two unpaired data sets, as CycleGAN does. Lists that
    were put into other orders once, before the training, and not by two shuffles in the script, look like labels
    of noise: see not-learning.

    ## Sources
    Public reports of permutations applied to the inputs only, and of `tf.data` pipelines whose parts were shuffled
    before they were zipped.
    """

    severity = "error"
    causes = ("evaluation-at-chance", "overfitting", *NO_LEARNING)

    @check
    def from_rows(self, rows: RepeatedRows, targets: TargetHistory | None = None) -> Finding | None:
        """Compare the targets of rows that came again."""
        if rows.rows < ROWS:
            raise NotApplicable(f"needs {ROWS} rows that came again")
        by_chance = 1 - rows.chance
        spread = math.sqrt(max(by_chance * rows.chance, 1 / rows.compared) / rows.compared)
        stayed = 1 - rows.changed / rows.compared
        if not rows.chance or stayed > by_chance + DEVIATIONS * spread or not rows.apart >= APART:
            return None
        if not rows.nearby >= NEARBY:
            return None
        if rows.of_others < OF_OTHERS * rows.changed:
            return None
        if targets is not None and _has_learned(targets):
            return None
        return self.found(
            f"The same inputs come with other targets: {rows.compared:,} times a row came again that had come "
            f"before, and {rows.changed:,} times ({rows.changed / rows.compared:.0%}) its target was another one, "
            f"that of another row. Targets assigned at random would differ in {rows.chance:.0%}. Inputs and "
            "targets are brought together in different orders.",
            fix={
                "torch": "rows = torch.randperm(n); x[rows], y[rows]  # one order for both",
                "keras": (
                    "order = rng.permutation(n); x[order], y[order]  # one order for both",
                    "tf.data.Dataset.from_tensor_slices((x, y)).shuffle(n)  # zip first, then shuffle",
                ),
            },
            evidence={
                "rows": rows.rows,
                "compared": rows.compared,
                "changed": rows.changed,
                "changed_by_chance": rows.chance,
                "apart": rows.apart,
                "apart_of_neighbours": rows.nearby,
                "targets_of_other_rows": rows.of_others,
            },
        )

    @check
    def from_order(self, order: UnpairedRows) -> Finding:
        """Report inputs that were put into another order than their targets."""
        by = "the collator puts them" if order.collated else "the script puts them, between loader and model,"
        return self.found(
            f"In the first batch, {order.moved} of {order.rows} rows of the inputs are not where their examples "
            f"are: {by} into another order, as by their length, and the targets stay behind. {order.apart} rows "
            "have the target of another example.",
            fix=(
                "batch.sort(key=lambda example: len(example[0]), reverse=True)  # whole examples, then zip(*batch)"
                if order.collated
                else "x, y = x[order], y[order]  # one order for both",
                "pack_padded_sequence(..., enforce_sorted=False), which needs no order",
            ),
            evidence={"rows": order.rows, "moved": order.moved, "targets_apart": order.apart},
        )

    @check
    def from_tags(self, batch: BatchFacts, outputs: OutputFacts, model: ModelFacts) -> Finding | None:
        """Look for the tags of words at the places of word pieces: they begin too early and are too few."""
        ids, tags, mask = batch.token_ids, batch.labels, batch.attention_mask
        if (
            ids is None
            or tags is None
            or mask is None
            or not ids.shape == tags.shape == mask.shape
            or ids.ndim != 2
        ):
            raise NotApplicable("needs a tag and a mask for each token")
        if (
            outputs.num_classes in (None, model.embedding_rows)
            or len(ids) < TAGGED
            or not np.isin(mask, (0, 1)).all()
        ):
            raise NotApplicable(f"needs a model that tags tokens, and {TAGGED} rows")
        real, known = mask == 1, tags != (-100 if batch.ignore_index is None else batch.ignore_index)
        start = ids[0, 0]
        if not (real[:, 0] & (ids[:, 0] == start)).all() or (ids[:, 1:][real[:, 1:]] == start).any():
            raise NotApplicable("needs rows that begin with a start token")
        if not known[:, 0].all() or (known & real).sum(axis=1).min() < TAGS:
            return None
        counts = np.unique(tags[:, 0], return_counts=True)[1]
        place, length = real.cumsum(axis=1), real.sum(axis=1, keepdims=True)
        tail = real & known & (place > length - length // TAIL)
        if counts.sum() - counts.max() < DIFFERENT * len(ids) or len(np.unique(tags[tail])) > 1:
            return None
        return self.found(
            f"The rows begin with a start token ({start}), which has {len(counts)} different tags in this batch, "
            f"and the last quarter of each row has {'no tag' if not tail.any() else 'a single tag'}. The tags "
            "are those of the words, from the first on, and the tokens are pieces of them, with a start token "
            "before: each tag is at the place of another word.",
            fix=(
                "labels = [-100 if i is None else tags[i] for i in tokenized.word_ids()]",
                "one tag for the first piece of each word, -100 for its others and for special tokens",
            ),
            evidence={"start_token": int(start), "tags_of_it": len(counts), "rows": len(ids)},
            severity="warning",
        )

    @check
    def from_source(self, written: WrittenFacts, targets: TargetHistory | None = None) -> Finding | None:
        """Look for two shuffles in a row, of the inputs and of their targets, or for a filter of one alone."""
        if written.cut:
            return self._of_filter(written.cut[0])
        if not written.apart or (targets is not None and _has_learned(targets)):
            return None
        pair = written.apart[0]
        return self.found(
            f"`{pair.first}` and `{pair.second}` are shuffled one after the other, each in an order of its own: "
            "the generator has moved on in between. They are inputs and targets of a training, and no target is "
            "where its row is.",
            fix=(
                f"order = np.random.permutation(len({pair.first}))  # one order for both",
                f"{pair.first}, {pair.second} = {pair.first}[order], {pair.second}[order]",
            ),
            evidence={"first": pair.first, "second": pair.second},
            where=pair.where,
        )

    def _of_filter(self, cut: CutTargets) -> Finding:
        return self.found(
            f"Rows of `{cut.inputs}` are left out for what they hold, and `{cut.targets}` keeps those of all "
            f"rows: `{cut.shown}` pairs them by their places. From the first row left out on, each target is that "
            "of another row.",
            fix=f"{cut.inputs}, {cut.targets} = {cut.inputs}[keep], {cut.targets}[keep]  # one mask for both",
            evidence={"inputs": cut.inputs, "targets": cut.targets},
            where=cut.where,
        )


def _has_learned(targets: TargetHistory) -> bool:
    late = len(targets.losses) // 2
    return bool(targets.losses[late:].sum() < LEARNED * targets.constant_losses[late:].sum())
