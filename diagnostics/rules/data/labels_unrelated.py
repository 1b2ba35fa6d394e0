"""See `LabelsUnrelated`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import RowLedger, SimpleFit, TargetHistory
from diagnostics.facts.data import OrientedPairs
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.inputs import Vocabulary
from diagnostics.facts.pipeline import BatchFacts, ModelFacts, OutputFacts
from diagnostics.facts.written import WrittenPattern, WrittenPatterns
from diagnostics.rules.shared.learnable import is_learnable, is_unrelated
from diagnostics.text.join import listed

ROWS = 32  # different rows that recurred
DEVIATIONS = 2.0  # above the share that a random reassignment leaves unchanged; noisy labels keep more
APART = 0.8  # of the squared change under a random reassignment; several annotators' labels are closer
NEARBY = 0.9  # of the difference between any two targets; neighbours are closer in each task of meta-learning
OF_OTHERS = 0.25  # of the changed targets; others are computed anew, as by a teacher or in Q-learning
LEARNED = 0.95  # of a constant prediction's loss
TAGGED, TAGS = 8, 4  # rows with a tag for each token, and tags in a row
DIFFERENT = 0.1  # of the rows: their start token, which has no meaning of its own, has an unusual tag
PAIRS, APART_PAIRS = 8, 3  # least number of readings compared, and of those that no single flip explains
FLIP_ROWS, FLIPPED = 24, 6  # least number of masks, boxes or sets of points; of those that fit only when mirrored
CLEAR, FLIP_SHARE = 0.5, 0.2  # of these rows; of those that fit clearly
TAIL = 4  # one in this many tokens of a row, at its end
SPECIAL = 2  # tokens of a row that have no tag of their own: the start token and the end token
VARIES = 3  # tokens without a tag: the difference between two rows of a batch whose words are split
DECODED, COUNTED = 4, 0.75  # rows with tags inside words, and how many of them have a tag for each word

BY_WORD = (
    "labels = [-100 if i is None else tags[i] for i in tokenized.word_ids()]",
    "tag only the first subword of each word, and give all other tokens the label -100",
)

TOGETHER = (
    "both = transform(torch.cat([image, mask])); image, mask = both[:3], both[3:]  # one draw",
    "image, mask = transform(tv_tensors.Image(image), tv_tensors.Mask(mask))  # transforms.v2",
)
MIRRORED = {"torch": "image.flip(-1)", "keras": "image[:, ::-1]"}
ONE_FLIP: dict[str, Any] = {
    "mask": {
        "torch": TOGETHER,
        "keras": "both = tf.image.random_flip_left_right(tf.concat([image, mask], -1))  # one draw, then split",
    },
    "box": {
        name: (
            f"image, x = {mirrored}, 1 - x  # for a box centre; in pixels: width - x",
            f"image, x0, x1 = {mirrored}, 1 - x1, 1 - x0  # for two box corners, which also swap",
        )
        for name, mirrored in MIRRORED.items()
    },
    "points": {
        name: f"image, x = {mirrored}, 1 - x  # in pixels: width - 1 - x; then swap left and right points"
        for name, mirrored in MIRRORED.items()
    },
}


class LabelsUnrelated(Rule):
    """Inputs are paired with the targets of other rows.

    ## What it does
    Recognises some training rows by their content throughout the run, and compares each row's target with its
    target when the row first appeared. The inputs are paired with the wrong targets if the targets change about as
    often as they would under random reassignment, and the new targets belong to other rows.

    `diagnose run` also searches the script for two mistakes. The first is shuffling inputs and targets one after
    the other with the same generator, without reseeding it. The rule then fits a linear and an RBF (radial basis
    function) model to half of the training rows, and reports nothing if the fit predicts the other half. The
    second is filtering the inputs by their values but merely truncating the targets to the same length.

    If the model tags tokens, the rule looks for three patterns in a batch:

    - The start tokens have several different tags, while the tokens at the end of each row share one tag or have
      none.
    - Each row has fewer tags than tokens, and all tags are at the beginning of the row.
    - Each row has as many tags as words, but the tags are on consecutive subwords.

    The rule also checks whether the collator or the loop reordered the inputs of the first batch without their
    targets.

    In a PyTorch loop, it also reads rows with an image and a mask several times, in a separate process. It then
    finds the flips and rotations that turn one reading of an image into another, and compares them with those of
    the mask.

    In the training batches, a linear fit predicts masks, boxes and points from the colours of their images. The
    rule compares the prediction with each target as given, mirrored left to right, upside down, and both.

    ## Why it is bad
    Targets that are unrelated to their rows cannot be learned: the loss ends up no better than that of a constant
    prediction. Usually, only the inputs or only the targets were shuffled, or both were shuffled in different
    orders.

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
    At least 32 rows must recur, and hardly any of them may occur twice within an epoch. All of these conditions
    must hold:

    - The share of unchanged targets is at most two standard deviations above the share expected under random
      reassignment.
    - The mean squared change of the targets is at least 80% of the change expected under random reassignment.
      Noisy labels change less.
    - At least a quarter of the changed targets belonged to other rows.
    - Within a batch, the targets of nearest neighbours differ about as much as those of random pairs of rows: the
      mean squared difference is at least 90% as large.
    - In PyTorch, the loss in the second half of the run is at least 95% of the loss of a constant prediction.

    Separate shuffles need more evidence in two cases: if the script does not show which list contains the targets,
    or if the training loss fell below 95% of a constant prediction's loss (the model may have memorised its rows).
    They are then reported only if the error of the fit on the other rows is at least 90% of a constant
    prediction's error.

    For tags, the batch must have at least 8 rows. At least 10% of the start tokens must have a tag other than the
    most frequent one. All tokens in the last quarter of each row must be ignored or share one tag, which must be
    the same in all rows. Tags are also reported if every row ends with the same end token, which occurs nowhere
    else, and one of these conditions holds:

    - Every row is tagged without a gap from its start token onwards, and at least its last two tokens have no tag.
      The number of tokens without a tag varies by at least 3 between rows.
    - Only the end token and the token before it have no tag, at least 10% of the start tokens have an unusual tag
      (as above), and the predictions depend on later tokens. If they depend only on earlier tokens, each tag may
      be meant for the next token.

    If the start token has no tag, the tokenizer or vocabulary must show where words begin: by WordPiece's `##`, or
    by byte-level BPE's leading space. Every row must be tagged without a gap from its second token onwards. At
    least 4 rows must have tags inside words, and at least 75% of these rows must have exactly as many tags as
    words.

    An array with at most 16 different values counts as a mask, any other as an image. In at least 8 pairs of
    readings, one reading must be an exact flip or rotation (by a multiple of 90°) of the other. In at least 3 of
    these pairs, no single flip or rotation may explain both the image and the mask. The finding is a note if only
    the images or only the masks change: the model may be meant to undo the change.

    For masks, boxes and points in batches, up to 96 different images are compared; at least 24 are needed. A mask
    fits its image if its correlation with the prediction, in its best orientation, is at least 0.3 and higher than
    the prediction's correlation with 90% of the other rows' masks. At least half of the masks must fit. At least
    20% of these masks (and at least 6) must be oriented differently from the others: their correlation in the most
    common orientation is at most a quarter of their correlation in their best one. A box is treated as a filled
    mask. It may be given as two corners, centre and size, or corner and size, in pixels or as fractions of the
    image size, with x or y first. Points are up to 64 pairs of x and y, or of y and x; their mask contains a disc
    around each.

    For reordered inputs, the first batch must have at least 8 rows, all of them different. The loss must receive
    exactly the targets of these rows, but at least two targets must be paired with the wrong row.

    ## Known problems
    Augmented rows differ each time and cannot be tracked. Images drawn with replacement are not compared, because
    they look like rows that naturally repeat. Targets that were reordered only once, before training, look like
    noisy labels (see `not-learning`). They are reported only if the source shows that inputs and targets were
    shuffled separately.

    Masks of scenes with a fixed layout, such as sky above a road, also fit when they are mirrored left to right,
    so separate flips are missed. Also missed are flips inside the model, targets that cannot be predicted from
    colour, and, in PyTorch, losses that call no function from `torch.nn.functional`.

    ## Sources
    Public reports of permutations applied to the inputs only, and of `tf.data` pipelines whose datasets were
    shuffled before they were zipped.
    """

    severity = "error"
    causes = ("evaluation-at-chance", "overfitting", *NO_LEARNING)

    @check
    def from_rows(self, rows: RowLedger, targets: TargetHistory | None = None) -> Finding | None:
        """Compare the targets of rows that recurred."""
        if rows.rows < ROWS:
            raise NotApplicable(f"needs at least {ROWS} repeated rows" if rows.rows else "")
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
            f"The same inputs appear with different targets at different times: {rows.changed:,} of "
            f"{rows.compared:,} repeated rows ({rows.changed / rows.compared:.0%}) had a different target than "
            f"before, often that of another row. Randomly assigned targets would differ in {rows.chance:.0%} of "
            "the repeats. So inputs and targets are not in the same order.",
            fix={
                "torch": "rows = torch.randperm(n); x[rows], y[rows]  # the same order for both",
                "keras": (
                    "order = rng.permutation(n); x[order], y[order]  # the same order for both",
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
    def from_pairs(self, pairs: OrientedPairs) -> Finding | None:
        """Compare how images and masks were flipped or rotated."""
        if pairs.compared < PAIRS:
            needs = f"needs {PAIRS} readings of images and masks that are flipped or rotated"
            raise NotApplicable("" if pairs.fits else needs)
        if pairs.apart < APART_PAIRS:
            return None
        alone = "images" if not pairs.masks_moved else "masks" if not pairs.images_moved else ""
        how = (
            f"only the {alone} are flipped or rotated, not the {'masks' if alone == 'images' else 'images'}"
            if alone
            else "the random transform is drawn again for the mask"
        )
        return self.found(
            f"Images and masks are flipped or rotated differently: {pairs.rows} rows were read several times. In "
            f"{pairs.apart} of {pairs.compared} pairs of readings, no single flip or rotation explains both the "
            f"change in the image and the change in the mask. Apparently, {how}, so the masks do not match "
            "their images.",
            fix=TOGETHER,
            evidence={
                "rows": pairs.rows,
                "compared": pairs.compared,
                "apart": pairs.apart,
                "images_moved": pairs.images_moved,
                "masks_moved": pairs.masks_moved,
                "cause": "orientation",
            },
            severity="note" if alone else "warning",
        )

    @check
    def from_flips(self, flips: OrientedPairs) -> Finding | None:
        """Compare how masks, boxes or points fit their images as given, and mirrored."""
        if not flips.fits:
            raise NotApplicable
        clear, usual = sum(flips.fits), max(flips.fits)
        if flips.rows < FLIP_ROWS or clear < CLEAR * flips.rows:
            raise NotApplicable(
                f"needs {FLIP_ROWS} masks, boxes or points that can be predicted from the colours of their images"
            )
        if clear - usual < max(FLIPPED, FLIP_SHARE * clear):
            return None
        how = ("as given", "mirrored left to right", "upside down", "mirrored both ways")
        several = {"mask": "masks", "box": "boxes", "points": "sets of points"}[flips.kind]
        counts = listed(f"{name} ({count})" for count, name in zip(flips.fits, how, strict=True) if count)
        return self.found(
            f"Images and their {several} are flipped differently. {clear} {several} can be predicted from the "
            f"colours of their images. The {several} fit this prediction best {counts}. Many {several} in the "
            "training batches therefore do not match their images.",
            fix=ONE_FLIP[flips.kind],
            evidence={"rows": flips.rows, "fits": list(flips.fits), "kind": flips.kind, "cause": "orientation"},
            severity="warning",
        )

    @check
    def from_order(self, rows: RowLedger) -> Finding:
        """Report inputs that were reordered without their targets."""
        if not rows.unpaired:
            raise NotApplicable
        moved = "all" if rows.moved == rows.in_batch else f"{rows.moved} of the"
        by = "the collator reorders them" if rows.collated else "the script reorders them between loader and model"
        return self.found(
            f"In the first batch, {moved} {rows.in_batch} input rows changed position: {by}, for instance by "
            "length, but the targets keep the old order. As a result, "
            f"{rows.unpaired} rows have the target of another example.",
            fix=(
                "batch.sort(key=lambda example: len(example[0]), reverse=True)  # sort examples before zip(*batch)"
                if rows.collated
                else "x, y = x[order], y[order]  # the same order for both",
                "do not sort the rows: pack_padded_sequence(..., enforce_sorted=False)",
            ),
            evidence={"rows": rows.in_batch, "moved": rows.moved, "targets_apart": rows.unpaired},
        )

    @check
    def from_tags(self, batch: BatchFacts, outputs: OutputFacts, model: ModelFacts) -> Finding | None:
        """Look for word tags at the positions of word pieces: they begin too early and are too few."""
        ids, tags, real, known = _tagged(batch, outputs, model)
        count = _tags_of_start(tags, known, real)
        if count is None:
            if _are_too_few(ids, real, known) or _fall_inside_words(batch, ids, real, known):
                return self._of_words(ids, real, known)
            return None
        place, length = real.cumsum(axis=1), real.sum(axis=1, keepdims=True)
        tail = real & known & (place > length - length // TAIL)
        if len(np.unique(tags[tail])) > 1:
            return None
        start = int(ids[0, 0])
        return self.found(
            f"Every row begins with a start token (id {start}), yet that position has {count} different "
            "tags in this batch, and the last quarter of each row has "
            f"{'no tags' if not tail.any() else 'the same tag throughout'}. There is one tag per word, but the "
            "tokens are subwords, preceded by a start token, so the tags are misaligned with the words.",
            fix=BY_WORD,
            evidence={"start_token": start, "tags_of_it": count, "rows": len(ids)},
            severity="warning",
        )

    def _of_words(self, ids: Array, real: Array, known: Array) -> Finding:
        tokens, tagged = real.sum(axis=1), (known & real).sum(axis=1)
        behind = not known[0, 0]
        without = tokens - tagged - behind
        return self.found(
            f"The {len(ids)} rows of this batch have {tokens.min()} to {tokens.max()} tokens each but only "
            f"{tagged.min()} to {tagged.max()} tags. In every row, the tags begin "
            f"{'right after' if behind else 'at'} the start token (id {ids[0, 0]}) and leave the last "
            f"{without.min()} to {without.max()} tokens without a tag. There is one tag per word, but the tokens "
            f"are subwords{'' if behind else ', preceded by a start token'}, so the tags are misaligned with the "
            "words.",
            fix=BY_WORD,
            evidence={
                "start_token": int(ids[0, 0]),
                "rows": len(ids),
                "tokens": int(tokens.sum()),
                "tags": int(tagged.sum()),
                "fewest_without": int(without.min()),
                "most_without": int(without.max()),
            },
            severity="warning",
        )

    @check
    def from_early_tags(
        self, batch: BatchFacts, outputs: OutputFacts, model: ModelFacts, dependence: DependenceFacts
    ) -> Finding | None:
        """Look for tags of all tokens that begin at the start token instead of behind it."""
        ids, tags, real, known = _tagged(batch, outputs, model)
        if not dependence.reads_ahead:  # otherwise the targets may be meant for the next token
            raise NotApplicable("needs a model that reads a whole text before it tags a token")
        count = _tags_of_start(tags, known, real)
        if count is None or not _misses_end(ids, real, known):
            return None
        start = int(ids[0, 0])
        return self.found(
            f"The tags are one position too early: the start token (id {start}) has {count} different tags in "
            f"this batch, and in each of its {len(ids)} rows, the last two tokens (the last subword and the end "
            "token) have none. Every tag belongs to the next token, so the model is trained to tag the wrong one.",
            fix=(
                "labels = [-100, *labels, -100]  # for the start token and the end token",
                "labels = [-100 if i is None else tags[i] for i in tokenized.word_ids()]",
            ),
            evidence={"start_token": start, "tags_of_it": count, "rows": len(ids), "one_early": True},
            severity="warning",
        )

    @check
    def from_source(self, written: WrittenPatterns, targets: TargetHistory | None = None) -> Finding | None:
        """Look for separate shuffles of inputs and targets, or for a filter applied to the inputs alone."""
        cut, apart = written.first("cut_targets"), written.first("shuffled_apart")
        if cut is not None:
            return self._of_filter(cut)
        if apart is None:
            return None
        fit = None if targets is None else targets.fit
        shown = not apart.by_name and (targets is None or not _has_learned(targets))
        if is_learnable(fit) or not (shown or is_unrelated(fit)):
            return None
        first, second = apart.names
        return self.found(
            f"`{first}` and `{second}` are shuffled separately. The first shuffle advances the random generator, "
            "so the two orders differ. As a result, the model is trained on targets that do not match their "
            f"inputs.{_of_other_rows(fit)}",
            fix=(
                f"order = np.random.permutation(len({first})); {first}, {second} = {first}[order], "
                f"{second}[order]",
            ),
            evidence={
                "first": first,
                "second": second,
                "fit_error": None if fit is None else fit.error,
                "fit_constant_error": None if fit is None else fit.constant_error,
            },
            where=apart.where,
        )

    def _of_filter(self, cut: WrittenPattern) -> Finding:
        inputs, targets, shown = cut.names
        return self.found(
            f"Some rows of `{inputs}` are filtered out by their values, but `{targets}` keeps the targets of "
            f"all rows: `{shown}` pairs rows and targets by position. After the first removed row, every row is "
            "paired with the target of a different row.",
            fix=f"{inputs}, {targets} = {inputs}[keep], {targets}[keep]  # the same mask for both",
            evidence={"inputs": inputs, "targets": targets},
            where=cut.where,
        )


def _tagged(batch: BatchFacts, outputs: OutputFacts, model: ModelFacts) -> tuple[Array, Array, Array, Array]:
    """Return the tokens of rows with a start token, their tags, which are no padding, and which have a tag."""
    ids, tags, mask = batch.token_ids, batch.labels, batch.attention_mask
    if ids is None or tags is None or mask is None or not ids.shape == tags.shape == mask.shape or ids.ndim != 2:
        raise NotApplicable("needs a tag and an attention-mask value for each token")
    if outputs.num_classes in (None, model.embedding_rows) or len(ids) < TAGGED or not np.isin(mask, (0, 1)).all():
        raise NotApplicable(f"needs a token-classification model and at least {TAGGED} rows")
    real, known = mask == 1, tags != (-100 if batch.ignore_index is None else batch.ignore_index)
    start = ids[0, 0]
    if not (real[:, 0] & (ids[:, 0] == start)).all() or (ids[:, 1:][real[:, 1:]] == start).any():
        raise NotApplicable("needs rows that begin with a start token")
    return ids, tags, real, known


def _tags_of_start(tags: Array, known: Array, real: Array) -> int | None:
    """Return how many different tags the start tokens have; None if almost all have the same, or none."""
    if not known[:, 0].all() or (known & real).sum(axis=1).min() < TAGS:
        return None
    counts = np.unique(tags[:, 0], return_counts=True)[1]
    return len(counts) if counts.sum() - counts.max() >= DIFFERENT * len(tags) else None


def _are_too_few(ids: Array, real: Array, known: Array) -> bool:
    """Return whether each row is tagged from its start token on, and its last tokens, now more now fewer, are not.

    False if the end token also separates two texts: then only one of the texts may be tagged.
    """
    tagged, length = (known & real).sum(axis=1, keepdims=True), real.sum(axis=1, keepdims=True)
    without = length - tagged
    if tagged.min() < TAGS or without.min() < SPECIAL or without.max() - without.min() < VARIES:
        return False
    place = real.cumsum(axis=1)
    return bool(np.array_equal(known & real, real & (place <= tagged)) and _are_closed(ids, real))


def _fall_inside_words(batch: BatchFacts, ids: Array, real: Array, known: Array) -> bool:
    """Return whether each row has a tag per word, on consecutive tokens behind the start token, also inside words.

    Tags of first subwords are as many, but never inside a word. Tags of all subwords are more; if they end before
    the row does, they are as many only by chance.
    """
    begins, decoded = _beginnings(batch.vocabulary)
    place, tagged = real.cumsum(axis=1), (known & real).sum(axis=1)
    if not begins or not np.array_equal(known & real, real & (place > 1) & (place <= tagged[:, None] + 1)):
        return False
    begun, readable = real & np.isin(ids, begins), (np.isin(ids, decoded) | ~real).all(axis=1)
    inside = readable & (known & real & ~begun).any(axis=1)
    return bool(inside.sum() >= DECODED and (begun.sum(axis=1) == tagged)[inside].mean() >= COUNTED)


def _beginnings(vocabulary: Vocabulary | None) -> tuple[list[int], list[int]]:
    """Return the ids that begin a word, by WordPiece's "##" or byte-level BPE's space, and all decoded ids."""
    if vocabulary is None:
        return [], []
    words = {id: text for id, text in vocabulary.words.items() if id not in vocabulary.special}
    pieces = any(text.startswith("##") for text in words.values())
    begins = [id for id, text in words.items() if (not text.startswith("##") if pieces else text.startswith(" "))]
    return begins, list(vocabulary.words)


def _are_closed(ids: Array, real: Array) -> bool:
    """Return whether every row ends with the same token, which occurs nowhere else."""
    last = real & (real.cumsum(axis=1) == real.sum(axis=1, keepdims=True))
    end = ids[last]
    return bool((end == end[0]).all() and not (ids[real & ~last] == end[0]).any())


def _misses_end(ids: Array, real: Array, known: Array) -> bool:
    """Return whether all tokens are tagged but the end token and the one before it."""
    place, length = real.cumsum(axis=1), real.sum(axis=1, keepdims=True)
    return _are_closed(ids, real) and np.array_equal(known & real, real & (place <= length - SPECIAL))


def _of_other_rows(fit: SimpleFit | None) -> str:
    if fit is None or not is_unrelated(fit):
        return ""
    return (
        f" A simple model (linear or radial basis) fitted to {fit.fitted} training rows predicts {fit.predicted} "
        f"others hardly better than a constant: its error is {fit.error:.3g}, against {fit.constant_error:.3g}."
    )


def _has_learned(targets: TargetHistory) -> bool:
    late = len(targets.losses) // 2
    return bool(targets.losses[late:].sum() < LEARNED * targets.constant_losses[late:].sum())
