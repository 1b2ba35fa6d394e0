"""See `EvaluationMismatch`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.calls import ObjectLedger
from diagnostics.facts.data import RefittedEncoder, ScaledRows, ScalerFits, TokenSides, row_numbers
from diagnostics.facts.dependence import DependenceFacts, ShiftedPositions
from diagnostics.facts.inputs import CutGenerations, InputFacts, InputSample, PromptEnds, TargetSides
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.shared.input_shift import (
    MIN_SHARE_OF_CHANNELS,
    WIDE,
    Distance,
    Moments,
    can_be_compared,
    distance,
    grouped,
    have_same_shape,
    is_series,
    is_standardised,
    level_distances,
    moments,
    other_order,
    unit_ratio,
    usual_range,
)
from diagnostics.rules.shared.prompt_ends import AddedTokens, added_tokens, cut_prompts
from diagnostics.rules.shared.unseen_tokens import UnseenTokens, unseen_tokens
from diagnostics.text.join import among, capitalized, listed

REPEATED = 2  # rows of training in an evaluation batch; a table may hold one row twice
SHARED, RECODED = 8, 0.5  # values known after both fits of an encoder, and share of them with another code
MADE = 0.9  # of the rows of a sample
MOVED_BY_REFIT = 0.25  # in units of the scaled inputs; two samples of the same rows differ by less
TRAINING_ROWS, EVALUATION_ROWS = 32, 16  # least numbers of rows; fewer may differ by chance
FACTOR = 5.0  # in scale; noise, another camera or another year do not make that much difference
FACTOR_STANDARD = 3.0  # if only one side is standardised: 1 / 0.3081, as for digits, is just above
FAR_STANDARD = 10.0  # the same, in scale or in standard deviations moved, if the rows may be from another domain
FACTOR_RANGE = 1.5  # if pixels fill different ranges, or their levels are further apart
VECTORIZER = "TextVectorization"
CODES = ("LabelEncoder", "OrdinalEncoder", "OneHotEncoder")  # equal on both sides if all categories are
HUGE = 20.0  # in scale: no series drifts so far, and no anomaly is so large
MOVED = 3.0  # standard deviations of the training rows
NARROWER = 2.5  # of all numbers together: the rows of one class are narrower in each feature, but not overall
FEATURES = 3  # least number of values in an example: one or two may be a coordinate, tested out of range
FEATURES_NARROWER = 8
AGREE = 2.0  # times the scale: within it, evaluation batches agree with each other
CONFORM = 0.9  # of them
CUT = 0.25  # of the generated sequences, and of the targets; one long target among many is an exception
SEQUENCES = 8  # generated; fewer may be a preview
UNSEEN = 0.3  # of the tokens held out: in other texts of the same kind, a few percent are new
NEW = 5  # of them, all different: another padding token is one
BY_CHANCE = 0.1  # of that share, at most, in a random split: rare tokens may be on one side alone
SHIFTED, MIN_SHIFTED = 0.25, 3  # of the padded rows; a row near the border between classes may cross it by little
SHOWN = 8  # channels whose new places are named

ORDER: Final = (
    "if the inputs are images, load all of them with the same library, or convert those loaded by OpenCV: "
    "cv2.cvtColor(image, cv2.COLOR_BGR2RGB)",
    "if the inputs are tables, reorder the columns before converting to arrays: test = test[train.columns]",
)
TARGETS: Final = (
    "transform both sets of targets with the scaler fitted on the training targets: scaler.transform(y_val)",
    "compare in the original unit: loss(prediction * std + mean, y_val)",
)
PAD_BEHIND: Final[tuple[str, ...]] = (
    "pad at the end, as in training, and take the prediction at the last real token of each row",
    "pass position ids that are counted from the first real token of each row",
)
COUNTED: Final[tuple[str, ...]] = (
    "model(input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0))",
    "pad at the end, as in training, and take logits[range(len(ids)), mask.sum(1) - 1]",
    "call model.generate(...), which computes the positions itself",
)
SHUFFLE: Final = {
    "torch": "split at random: random_split(dataset, [0.8, 0.2], generator=torch.Generator().manual_seed(0))",
    "keras": (
        "shuffle the rows before fit(validation_split=...), which holds out the last rows: "
        "order = np.random.permutation(len(x)); x, y = x[order], y[order]",
    ),
}


@dataclass(frozen=True)
class _Mismatch:
    """An input that differs, with the explanation; the numbers are those of all channels."""

    name: str
    training: Array
    evaluation: Array
    how: str
    cause: str


class EvaluationMismatch(Rule):
    """Evaluation data differs from training data in scale, channel order, tokens or positions.

    ## What it does
    Compares evaluation inputs with training inputs, channel by channel: their means and scales, whether only one
    side is standardised, the range of pixel values, and the spacing of values converted from 8-bit integers. It
    also looks for channels in a different order, for example if one side reads images as BGR. For regression, it
    also compares the targets that the loss receives.

    For token ids and other ids, the rule counts the evaluation tokens that never occur in the training rows, and
    compares their share with the share in 20 random splits of the same rows. After a run with a PyTorch loop, it
    takes texts that the script evaluated with left padding, and compares the predictions with and without that
    padding.

    In a PyTorch loop, the rule also reports generation in which a recurrent layer gets one time step per call, but
    never the state that its previous call returned.

    Under `diagnose run`, the rule also searches the script for a scikit-learn scaler or encoder that is fitted
    again on the evaluation data. It checks which fit of a scaler produced the training rows, and which produced
    the evaluation rows. It also checks whether a label or ordinal encoder that is fitted again, or a
    `TextVectorization` layer that is adapted again, assigns different codes to the same values. If `generate` from
    transformers was called without a length limit, the rule counts the sequences that the default length cuts off
    before an end token, and compares that length with the lengths of the targets. For a decoder that was trained
    only on answers, with the labels of the prompts ignored, the rule compares the ends of the prompts passed to
    `generate` with the tokens before the answers in training, and looks for a second start token.

    ## Why it is bad
    The model is evaluated on values that it has never seen, so it seems to overfit. If only the training targets
    were standardised, the evaluation loss is in a different unit, and is useless for choosing an epoch or for
    early stopping. If `generate` stops too early, a metric compares incomplete outputs with full targets.

    Keras' `validation_split` holds out the last rows. If the rows are ordered by source or by user, the embeddings
    of many held-out tokens were never trained. With left padding, a decoder with absolute positions counts
    positions from the first pad token, so every token gets a different position from the one it had in training.

    ## Example
    ```python
    prepare = Compose([ToTensor(), Normalize((0.1307,), (0.3081,))])
    train = MNIST("data", train=True, transform=prepare)
    test = MNIST("data", train=False, transform=ToTensor())
    ```

    ## Instead
    ```python
    prepare = Compose([ToTensor(), Normalize((0.1307,), (0.3081,))])
    train = MNIST("data", train=True, transform=prepare)
    test = MNIST("data", train=False, transform=prepare)
    ```

    ## Thresholds
    At least 80% of the channels must show the same difference, in at least 32 training rows and 16 evaluation
    rows. A single evaluation image is enough if its scale is at least 20 times that of the training images. One of
    these conditions must hold:

    - The scales differ by at least a factor of 5, or the means by at least 3 standard deviations.
    - Only one side is standardised (means of 0 and standard deviations of 1, each to within 0.3), the scales of at
      least half of the channels differ by at least a factor of 3, and the other channels are scaled or shifted as
      well.
    - The scales differ by at least a factor of 1.5, and either the pixels fill different ranges completely (0 to
      1, -1 to 1, 0 to 255), or the values of both datasets are evenly spaced, but with different step sizes.

    In tables, the distributions on both sides must also have the same shape once they are standardised, unless the
    scales differ by a factor of at least 20.

    All evaluation batches must differ from the training batches and agree with each other. Batches that contain at
    least 2 training rows are ignored, because scripts also compute the training accuracy. If some evaluation
    batches resemble the training batches, or if the rows are a time series, the rule reports only three
    differences: a different range, a different spacing of values converted from 8-bit integers, or scales that
    differ by a factor of at least 20.

    Channels are reported as reordered if two conditions hold:

    - At least two channels differ by at least 10 standard errors from the training channels at the same positions.
    - Once the channels are reordered, their means and mean deviations all agree with those in training, to within
      4 standard errors.

    The scales of the targets must differ by at least a factor of 5 (3 if only one side is standardised), while the
    inputs look alike. If the inputs are unknown or the rows are a series, the factor must be at least 20.

    Generated text is reported as cut off if all of these conditions hold:

    - The script sets neither `max_length` nor `max_new_tokens`.
    - The default length cuts off at least a quarter of the sequences before an end token.
    - At least a quarter of the targets in the first batch are longer than the default length, and at least 90% of
      the targets have an end token.

    With fewer than 8 sequences, the finding is a note.

    Prompts passed to `generate` are reported if the last 64 meet all of these conditions:

    - There are at least 4 prompts. The first training batch has at least 8 answers, all preceded by the same
      separator.
    - All prompts end with the same part of the separator, or at least half of them end with two tokens that
      precede the separator in training.
    - No prompt contains the whole separator, and at most half of the generated texts begin with the missing part.
    - At least half of the prompts' tokens occur in the training prompts (at least 90% if the prompts contain no
      part of the separator).

    Prompts are also reported if at least 4 of them differ, and all have tokens that the training prompts lack:
    they begin with two copies of the token that begins each training text once, or the same one or two tokens
    follow the separator, and the first of them begins no answer in the first training batch. The second case
    alone is a note.

    Unseen tokens are counted only if there are at least 64 training rows, and at least 32 evaluation rows with 100
    tokens in total. At least 30% of the evaluation tokens, and at least 5 different ones, must not occur in the
    training rows. In each random split, the share of such tokens must be at most a tenth of their share in the
    evaluation rows. The finding is a note unless the evaluation rows are known to follow the training rows in the
    same dataset.

    A scaler counts as refitted if at least 90% of the training rows come from one fit, and at least 90% of the
    rows in an evaluation batch (of at least 16 rows) come from another. The finding is a note if the results of
    the two fits differ by less than 0.25 for every raw value that the first fit maps to a number from -1 to 1.

    An encoder counts as refitted if the same object was fitted two or three times on pandas columns with the same
    name (a Series or part of a DataFrame), and encoded something each time. At least 8 values must occur in both
    fits, and at least half of them must have different codes. The encoder is not reported if one training run
    began between the two fits and another began after them, as in cross-validation.

    Left padding is reported if removing it changes at least 3 predictions and at least a quarter of all
    predictions. Replacing the pad tokens with other tokens must not change any prediction, and the training batch
    must not contain left padding.

    A recurrent layer must get a single time step and no state in at least 20 calls in a row, although its training
    sequences were all longer. Each input must come from the previous output: it is either that output itself or a
    token chosen from it. On average, a token must be at least 1.6 times as probable under the previous output as
    under the outputs of all calls.

    ## Known problems
    Evaluation rows from another domain are reported if the differences reach these thresholds. A split by time is
    reported if at least 30% of its evaluation tokens are new. Small differences, such as slightly different
    normalisation constants, go unnoticed, and so do swapped channels that have the same distribution. Encoders
    that are fitted on NumPy arrays are found only in the source. The end of a prompt is not compared if the
    training prompts contribute to the loss, if the model is trained again later, or if the prompt contains earlier
    answers.

    ## Sources
    The documentation for `torchvision.transforms.Normalize` and `sklearn.preprocessing.StandardScaler`;
    scikit-learn's "Common pitfalls and recommended practices" (inconsistent preprocessing); public reports of
    networks trained on RGB images and tested on the output of `cv2.imread`, which is BGR.
    """

    severity = "warning"
    causes = ("constant-predictions", "overfitting")
    FIXES = {
        "torch": (
            "use the same ToTensor() and Normalize(mean, std) in training and evaluation; only random "
            "augmentation may differ",
            "scale training and evaluation data with the statistics of the training rows: "
            "scaler.transform(x_test)",
        ),
        "keras": (
            "scale x_test exactly like x_train, for example with x_test.astype('float32') / 255",
            "make the scaling a layer of the model: keras.layers.Rescaling(1 / 255) or "
            "keras.layers.Normalization()",
        ),
    }

    @check
    def from_inputs(self, inputs: InputFacts) -> Finding | None:
        """Compare each input of evaluation with the same input of training."""
        judged = False
        for name, training in inputs.training.items():
            evaluation = inputs.evaluation.get(name)
            if evaluation is None or not _are_comparable(training, evaluation):
                continue
            evaluation = _held_out(training, evaluation)
            judged = True
            found = _compared(name, training, evaluation, inputs.rounds)
            if found is not None:
                return self._differs(found)
        if not judged:
            raise NotApplicable(
                f"needs comparable floating-point inputs from {TRAINING_ROWS} training rows and "
                f"{EVALUATION_ROWS} evaluation rows"
            )
        return None

    @check
    def from_targets(self, sides: TargetSides) -> Finding | None:
        """Compare the numbers that are to be predicted."""
        if not can_be_compared(sides):
            raise NotApplicable("needs the regression targets of 32 training rows and 16 evaluation rows")
        ratio = unit_ratio(sides)
        if ratio is None:
            return None
        wider, narrower = ("evaluation", "training") if ratio > 1 else ("training", "evaluation")
        return self.found(
            "The evaluation targets are in a different unit from the training targets. Evaluation: "
            f"{_described(sides.evaluation)}. Training: {_described(sides.training)}. The spread of the {wider} "
            f"targets is {_times(ratio)} that of the {narrower} targets, but the two distributions have the same "
            "shape. So the evaluation loss compares predictions in one unit with targets in another.",
            fix=TARGETS,
            evidence={
                "training_mean": float(sides.training.mean()),
                "training_deviation": float(sides.training.std()),
                "evaluation_mean": float(sides.evaluation.mean()),
                "evaluation_deviation": float(sides.evaluation.std()),
                "cause": "targets",
            },
        )

    @check
    def from_tokens(self, sides: TokenSides) -> Finding | None:
        """Compare the tokens held out with those trained on, and with a random split of the same rows."""
        unseen = unseen_tokens(sides)
        if unseen.share < UNSEEN or len(unseen.ids) < NEW or unseen.by_chance > BY_CHANCE * unseen.share:
            return None
        return self._unseen(unseen, sides)

    def _unseen(self, unseen: UnseenTokens, sides: TokenSides) -> Finding:
        ids = "ids" if sides.inputs[unseen.input][0].shape[1] == 1 else "token ids"
        if not unseen.input.isdigit():
            ids += f" of the input {unseen.input!r}"
        by_chance = f"at most {unseen.by_chance:.1%}" if unseen.by_chance >= 0.0005 else "almost none"
        why = (
            f"The evaluation rows are simply the last {sides.held_out_size:,} of "
            f"{sides.training_size + sides.held_out_size:,}, split off without shuffling, so they differ from the "
            "training rows."
            if sides.are_cut
            else "If both sets are meant to come from the same distribution, they were not split at random."
        )
        counted = f"all {unseen.count:,}"
        if unseen.count < unseen.tokens:
            counted = f"{unseen.count:,} of {unseen.tokens:,}"
        return self.found(
            f"{unseen.share:.0%} of the {ids} in the evaluation rows ({counted} compared: "
            f"{listed(unseen.ids, most=SHOWN)}) never occur in the training rows. With a random split of the "
            f"same rows, {by_chance} of the evaluation ids would be new. {why}",
            fix=SHUFFLE,
            severity=None if sides.are_cut else "note",
            evidence={
                "input": unseen.input,
                "unseen_share": round(unseen.share, 4),
                "share_by_chance": round(unseen.by_chance, 4),
                "unseen_tokens": len(unseen.ids),
                "held_out": sides.held_out_size,
                "cause": "tokens",
            },
        )

    @check
    def from_positions(self, dependence: DependenceFacts) -> Finding | None:
        """Compare the predictions of an evaluation with and without the padding in front of its rows."""
        shifted = dependence.shifted
        if shifted is None:
            raise NotApplicable(
                dependence.why_not.get("positions", "needs evaluation texts that are padded at the start")
            )
        if shifted.changed < max(MIN_SHIFTED, SHIFTED * shifted.rows):
            return None
        if shifted.with_positions is not None and shifted.with_positions > shifted.changed / 2:
            return None
        return self._shifted(shifted)

    def _shifted(self, shifted: ShiftedPositions) -> Finding:
        proof, fix = "", PAD_BEHIND
        if shifted.with_positions is not None:
            left = shifted.with_positions or "none"
            proof = (
                f"With position_ids counted from the first real token of each row, {left} of these predictions "
                f"would change: {shifted.reader} gets no position_ids and counts from the first pad token. "
            )
            fix = COUNTED
        return self.found(
            "The evaluation texts are padded at the start, which shifts their tokens to different positions than "
            f"in training. When the padding (up to {shifted.longest} positions) is removed, {shifted.changed} of "
            f"{shifted.rows} predictions change, although the pad tokens are masked. {proof}So the prediction "
            "for a row depends on the lengths of the other rows in its batch.",
            fix=fix,
            evidence={
                "input": shifted.input,
                "rows": shifted.rows,
                "changed": shifted.changed,
                "longest": shifted.longest,
                "with_positions": shifted.with_positions,
                "reader": shifted.reader,
                "cause": "positions",
            },
        )

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Take the first scaler or encoder that is fitted once more on the evaluation rows."""
        refitted = written.of("refitted_scalers")
        if not refitted:
            return None
        one = min(refitted, key=lambda one: (one.names[0] in CODES, one.by_name))  # a scaler, if there is one
        kind, training, evaluation = one.names
        differs = (
            "a category missing from one of them shifts the codes of the other categories"
            if kind in CODES
            else "the same raw value is transformed differently in training and in evaluation"
        )
        return self.found(
            f"{kind} is fitted on `{training}` and again on `{evaluation}`: {differs}. Refitting would not work "
            "at all for a single new row.",
            severity="note" if kind in CODES else one.severity,
            fix=f"{evaluation} = fitted.transform({evaluation})  # fitted only on the training rows",
            evidence={
                "kind": kind,
                "training": training,
                "evaluation": evaluation,
                "cause": "refitted",
            },
            where=one.where,
        )

    @check
    def from_encoder(self, refitted: RefittedEncoder) -> Finding | None:
        """Compare the codes that an encoder gave to the same values after its first fit and after a second."""
        shared, moved = refitted.shared, refitted.moved
        if shared < SHARED or moved < RECODED * shared:
            return None
        before, after = refitted.values
        first = "" if refitted.first is None else f" on line {refitted.first.line}"
        return self.found(
            f"The {refitted.kind} {'' if refitted.kind == VECTORIZER else 'of column '}{refitted.column!r} is "
            f"{'adapted' if refitted.kind == VECTORIZER else 'fitted'} twice: first{first}, on {before:,} "
            f"different values, and again here, on {after:,}. Of the {shared:,} values in both, {moved:,} are "
            "assigned a different code, so a model trained on the first codes mistakes them for other values.",
            fix="vectorizer(test)  # call adapt() only once, on the training texts"
            if refitted.kind == VECTORIZER
            else "encoder.transform(test[column])  # fit only once, on all values that may occur",
            evidence={
                "kind": refitted.kind,
                "column": refitted.column,
                "values": list(refitted.values),
                "shared": shared,
                "moved": moved,
                "cause": "refitted",
            },
            where=refitted.where,
        )

    @check
    def from_scalers(self, scalers: ScalerFits, inputs: InputFacts) -> Finding | None:
        """Look for evaluation rows that were scaled by another fit than the training rows."""
        for name, training in inputs.training.items():
            trained = _made_by(scalers, training.batches)
            if trained is None or name not in inputs.evaluation:
                continue
            made = [_made_by(scalers, (batch,)) for batch in inputs.evaluation[name].batches]
            other = next((fit for fit in reversed(made) if fit is not None and fit is not trained), None)
            if other is None:
                continue
            moved = _moved(trained, other)
            line = "" if trained.where is None else f" on line {trained.where.line}"
            return self.found(
                f"Training and evaluation rows are scaled by different fits: {trained.kind} is fitted to the "
                f"training rows{line}, and {other.kind} is fitted again here. So the same raw value differs by up "
                f"to {moved:.2g} between the training and evaluation inputs.",
                fix="x_test = scaler.transform(test)  # fitted only on the training rows",
                evidence={"kind": other.kind, "columns": len(other.factor), "moved": moved, "cause": "refitted"},
                where=other.where,
                severity=None if moved >= MOVED_BY_REFIT else "note",
            )
        return None

    @check
    def from_single_positions(self, ledger: ObjectLedger) -> Finding:
        """Report generation in which a recurrent layer never gets the state that it returned."""
        if not ledger.lone_positions:
            raise NotApplicable
        return self.found(
            f"{ledger.name} generates without memory: {ledger.lone_positions:,} times in a row, its layer "
            f"{ledger.recurrent} received no state and only a single position, computed from the previous output. "
            "So each prediction depends only on the position before it. In training, the layer read sequences of "
            f"at least {ledger.trained_length:,} positions.",
            fix=(
                "output, state = model(token, state)  # pass the state that the previous call returned",
                "pass the whole sequence generated so far in each call",
            ),
            evidence={
                "layer": ledger.recurrent,
                "calls": ledger.lone_positions,
                "trained_length": ledger.trained_length,
                "cause": "dropped state",
            },
        )

    @check
    def from_generations(self, cut: CutGenerations) -> Finding | None:
        """Compare the default length of `generate` with the length of the targets."""
        longer = int((cut.targets > cut.limit).sum())
        if cut.cut < CUT * cut.rows or longer < CUT * len(cut.targets):
            return None
        longest = int(cut.targets.max())
        return self.found(
            f"generate() stops after {cut.limit} new tokens, the transformers default, because the script sets no "
            f"maximum length. {capitalized(among(cut.cut, cut.rows, 'generated text'))} checked "
            f"{'is' if cut.rows == 1 else 'are'} cut off there. "
            f"{longer} of the {len(cut.targets)} targets in the first batch are longer (up to {longest} tokens): "
            "even a perfect model could not generate them, and a metric compares truncated texts with full "
            "targets.",
            fix=(
                f"Seq2SeqTrainingArguments(..., generation_max_length={longest + 1})  # or longer",
                f"model.generate(..., max_new_tokens={longest})  # or more",
            ),
            evidence={
                "rows": cut.rows,
                "cut": cut.cut,
                "limit": cut.limit,
                "targets": len(cut.targets),
                "longer": longer,
                "longest": longest,
                "cause": "generation length",
            },
            severity=None if cut.rows >= SEQUENCES else "note",
        )

    @check
    def from_prompts(self, ends: PromptEnds) -> Finding | None:
        """Compare the prompts of `generate` with the tokens before the answers in training."""
        added, cut = added_tokens(ends), cut_prompts(ends)
        if added is not None:
            return self._of_added(ends, added)
        if cut is None:
            return None
        answers, prompts = len(ends.trained), len(ends.generated)
        absent = cut.before[len(cut.before) - cut.missing :]
        there = cut.before[: -cut.missing]
        how = f": they end with {_tokens(there, ends.words)}" if there else ""
        before = _tokens(cut.before, ends.words)
        return self.found(
            f"The prompts passed to generate() end too early. In training, each answer follows {before} "
            f"({answers:,} answers checked). But none of the last {prompts:,} prompts ends with "
            f"{_tokens(absent, ends.words)}{how}. The model was never trained to answer such a prompt, so the "
            "generated texts do not show what it has learned.",
            fix=(
                "tokenizer.apply_chat_template(messages, add_generation_prompt=True)",
                "build the prompts for training and for generate() with the same function",
            ),
            evidence={
                "answers": answers,
                "prompts": prompts,
                "recognised": cut.recognised,
                "before": list(cut.before),
                "missing": list(absent),
                "cause": "generation prompt",
            },
        )

    def _of_added(self, ends: PromptEnds, added: AddedTokens) -> Finding:
        answers, prompts = len(ends.trained), len(ends.generated)
        start = () if added.start is None else (added.start,)
        how = []
        if start:
            token = _tokens(start, ends.words)
            how.append(f"begin with {token} twice, although texts in training begin with it once")
        if added.behind:
            behind, before = (_tokens(ids, ends.words) for ids in (added.behind, added.before))
            how.append(f"end with {behind} after {before}, where an answer begins in training")
        return self.found(
            f"The prompts passed to generate() have tokens that those in training lack. All of the last "
            f"{prompts:,} prompts {', and '.join(how)} ({answers:,} answers checked). The model was never trained "
            "to answer such a prompt, so the generated texts do not show what it has learned.",
            fix=(
                "tokenizer(prompt, add_special_tokens=False), if the prompt was made by a chat template or "
                "contains the special tokens",
                "build the prompts for training and for generate() with the same function, without a space at "
                "the end",
            ),
            evidence={
                "answers": answers,
                "prompts": prompts,
                "before": list(added.before),
                "behind": list(added.behind),
                "doubled_start": added.start,
                "cause": "generation prompt",
            },
            severity=None if start else "note",
        )

    def _differs(self, found: _Mismatch) -> Finding:
        called = "The inputs" if found.name.isdigit() else f"The values of {found.name}"
        return self.found(
            f"{called} are preprocessed differently in evaluation and in training. Evaluation: "
            f"{_described(found.evaluation)}. Training: {_described(found.training)}. {found.how} The model is "
            "evaluated on inputs unlike those it was trained on, so the evaluation says nothing about the "
            "model.",
            fix=ORDER if found.cause == "order" else None,
            evidence={
                "input": found.name,
                "training_mean": float(found.training.mean()),
                "training_deviation": float(found.training.std()),
                "evaluation_mean": float(found.evaluation.mean()),
                "evaluation_deviation": float(found.evaluation.std()),
                "cause": found.cause,
            },
        )


def _made_by(scalers: ScalerFits, batches: Sequence[Array]) -> ScaledRows | None:
    """Return the only fit that made most of these rows; None if none did, or several, or the rows are few."""
    rows = [batch[:, :, 0] for batch in batches if batch.shape[2] == 1]
    if sum(map(len, rows)) < EVALUATION_ROWS:
        return None
    made = [
        fit
        for fit in scalers.fits
        if len(fit.factor) == rows[0].shape[1]
        and np.isin(row_numbers(np.concatenate(rows)), fit.numbers).mean() >= MADE
    ]
    return made[0] if len(made) == 1 else None


def _moved(one: ScaledRows, other: ScaledRows) -> float:
    """Return how far apart the fits put a raw value, at most, of those from -1 to 1 after the first fit."""
    ends = np.array([[-1.0], [1.0]])
    raw = (ends - one.offset) / one.factor
    return float(np.abs(raw * other.factor + other.offset - ends).max())


def _described(numbers: Array) -> str:
    return (
        f"mean {numbers.mean():.3g}, standard deviation {numbers.std():.3g} and values from {numbers.min():.3g} "
        f"to {numbers.max():.3g}"
    )


def _are_comparable(training: InputSample, evaluation: InputSample) -> bool:
    pictures = training.positional and evaluation.positional and evaluation.rows > 0
    if training.rows < TRAINING_ROWS or (evaluation.rows < EVALUATION_ROWS and not pictures):
        return False
    if training.integers and evaluation.integers:
        return False
    if training.batches[0].shape[1] != evaluation.batches[0].shape[1]:
        return False
    return all(bool(np.isfinite(batch).all()) for batch in (*training.batches, *evaluation.batches))


def _held_out(training: InputSample, evaluation: InputSample) -> InputSample:
    """Return the evaluation batches without those that repeat rows of training, as for a training accuracy.

    If none is left, or only a few rows, all are returned.
    """
    seen = Counter(row.tobytes() for batch in training.batches for row in batch if _is_one_of_a_kind(row))
    kept = [
        batch
        for batch in evaluation.batches
        if sum(seen[row.tobytes()] == 1 for row in batch if _is_one_of_a_kind(row)) < REPEATED
    ]
    held_out = replace(evaluation, batches=tuple(kept))
    return held_out if held_out.rows >= EVALUATION_ROWS else evaluation


def _is_one_of_a_kind(row: Array) -> bool:
    """Whether no other example is likely to have exactly these numbers."""
    return len(np.unique(row)) >= FEATURES and bool((row % 1 != 0).any())


def _compared(name: str, training: InputSample, evaluation: InputSample, rounds: int) -> _Mismatch | None:
    numbers = training.numbers()
    whole = moments(numbers)
    usual = [moments(group) for group in grouped(training.batches)]
    if evaluation.rows < EVALUATION_ROWS:
        return _few_pictures(name, training, evaluation)
    groups = grouped(evaluation.batches)
    far = [group for group in groups if not _is_close(moments(group), whole, usual)]
    found = _reordered(name, training, evaluation)
    if found is not None or not far or not _agree(far):
        return found
    others = np.concatenate(far, axis=1)
    if rounds == 1 and _is_noise(others):  # a trial run, for example to measure speed
        return None
    away = moments(others)
    apart = distance(whole, away)
    if apart is None:
        return None
    sides = _Sides(numbers, others, whole, away, apart, training)
    reason = sides.certain()
    if reason is None and len(far) == len(groups):
        reason = sides.likely(is_series(evaluation) or is_series(training))
    if reason is None:
        return None
    cause, how = reason
    return _Mismatch(name, numbers, others, how, cause)


def _few_pictures(name: str, training: InputSample, evaluation: InputSample) -> _Mismatch | None:
    """Return the mismatch of images, even of a single one, whose values no training image can have."""
    ours, theirs = training.numbers(), evaluation.numbers()
    apart = distance(moments(ours), moments(theirs))
    if apart is None or (apart.scales > np.log(HUGE)).mean() < MIN_SHARE_OF_CHANNELS:  # narrower ones may be dark
        return None
    reason = _Sides(ours, theirs, moments(ours), moments(theirs), apart, training).certain()
    return None if reason is None else _Mismatch(name, ours, theirs, reason[1], reason[0])


def _reordered(name: str, training: InputSample, evaluation: InputSample) -> _Mismatch | None:
    """Return the mismatch of channels that are certain to be in another order."""
    if is_series(training) or is_series(evaluation):
        return None
    order = other_order(training, evaluation)
    if order is None:
        return None
    moved = [(here, there) for here, there in enumerate(order) if here != there]
    ours, theirs = (listed([pair[side] for pair in moved], most=SHOWN) for side in (0, 1))
    how = (
        f"The channels are in a different order: evaluation channels {ours} look like training channels {theirs}, "
        "respectively."
    )
    return _Mismatch(name, training.numbers(), evaluation.numbers(), how, "order")


def _is_close(one: Moments, whole: Moments, usual: list[Moments]) -> bool:
    apart = [distance(other, one) for other in (whole, *usual)]
    return any(gap is not None and gap.is_close() for gap in apart)


def _agree(groups: list[Array]) -> bool:
    """Return whether batches have about the same scale, as rows from one source have."""
    logs = np.log([max(float(group.std()), 1e-30) for group in groups])
    return bool((np.abs(logs - np.median(logs)) < np.log(AGREE)).mean() >= CONFORM)


def _is_noise(numbers: Array) -> bool:
    """Return whether numbers (channels, n) look like output of `torch.randn` or `torch.rand`."""
    mean, deviation = float(numbers.mean()), float(numbers.std())
    normal = abs(mean) < 0.1 and abs(deviation - 1) < 0.1
    uniform = (
        numbers.min() >= 0 and numbers.max() <= 1 and abs(mean - 0.5) < 0.05 and abs(deviation - 0.289) < 0.03
    )
    return bool(normal or uniform)


@dataclass(frozen=True)
class _Sides:
    """Both sides: numbers (channels, n), their moments, and the distance between them."""

    training: Array
    evaluation: Array
    of_training: Moments
    of_evaluation: Moments
    apart: Distance
    sample: InputSample

    def certain(self) -> tuple[str, str] | None:
        """Return cause and explanation if the numbers themselves show how they were prepared."""
        found = self._by_levels() or self._by_range() or self._by_scale(HUGE)
        return found or self._by_standard(FAR_STANDARD, FAR_STANDARD)

    def likely(self, series: bool) -> tuple[str, str] | None:
        """Return cause and explanation if all evaluation batches are far from training.

        Args:
            series: whether the rows are a series.
        """
        judged = self.of_training.judged & self.of_evaluation.judged
        if series or not (self.sample.positional or have_same_shape(self.training, self.evaluation, judged)):
            return None
        return self._by_standard(FACTOR_STANDARD, MOVED) or self._by_scale(FACTOR) or self._by_mean()

    def _by_levels(self) -> tuple[str, str] | None:
        ours, theirs = level_distances(self.training), level_distances(self.evaluation)
        known = np.isfinite(ours) & np.isfinite(theirs)
        if known.mean() < MIN_SHARE_OF_CHANNELS:
            return None
        ratios = np.log(theirs[known] / ours[known])
        scales = np.log(self.of_evaluation.deviations[known] / self.of_training.deviations[known])
        differs = (np.abs(ratios) > np.log(FACTOR_RANGE)) & (np.abs(ratios - scales) < np.log(FACTOR_RANGE))
        if differs.mean() < MIN_SHARE_OF_CHANNELS:
            return None
        factor = float(np.exp(np.median(ratios)))
        wider, narrower = ("evaluation", "training") if factor > 1 else ("training", "evaluation")
        return "levels", (
            f"Both sets of values are evenly spaced, like bytes, and the {wider} values are {_times(factor)} as "
            f"far apart as the {narrower} values."
        )

    def _by_range(self) -> tuple[str, str] | None:
        if not self.sample.positional and self.sample.size < WIDE:
            return None
        ours, theirs = usual_range(self.training), usual_range(self.evaluation)
        if ours is not None and theirs is not None and ours != theirs:
            return "range", f"The values span {theirs} in evaluation, but {ours} in training."
        if (ours is None) == (theirs is None) or not self.apart.is_scaled(FACTOR_RANGE):
            return None
        if ours is None and is_standardised(self.of_training):
            return "range", f"The values span {theirs} in evaluation, but are standardised in training."
        if theirs is None and is_standardised(self.of_evaluation):
            return "range", f"The values are standardised in evaluation, but span {ours} in training."
        return None

    def _by_standard(self, factor: float, deviations: float) -> tuple[str, str] | None:
        ours, theirs = is_standardised(self.of_training), is_standardised(self.of_evaluation)
        if ours == theirs or not self.apart.is_changed(factor, deviations) or not self._is_whole():
            return None
        one, other = ("training", "evaluation") if ours else ("evaluation", "training")
        return (
            "standardised",
            f"Each channel has mean 0 and standard deviation 1 in {one}, but not in {other}.",
        )

    def _by_scale(self, factor: float) -> tuple[str, str] | None:
        if self.sample.size < FEATURES or not self.apart.is_scaled(factor) or not self._is_whole():
            return None
        median = float(np.exp(np.median(self.apart.scales)))
        wider, narrower = ("evaluation", "training") if median > 1 else ("training", "evaluation")
        return "scale", f"In {wider}, the spread of each channel is {_times(median)} as large as in {narrower}."

    def _by_mean(self) -> tuple[str, str] | None:
        if self.sample.size < FEATURES or not self.apart.is_moved(MOVED):
            return None
        return "mean", (
            f"In evaluation, the channel means are {np.median(self.apart.shifts):.3g} standard deviations away "
            "from those in training."
        )

    def _is_whole(self) -> bool:
        """Return whether a narrower evaluation differs in more than the choice of its rows."""
        if np.median(self.apart.scales) > 0 or self.apart.scales.max() > np.log(FAR_STANDARD):
            return True
        together = self.training.std() / max(float(self.evaluation.std()), 1e-30)
        return bool(self.sample.size >= FEATURES_NARROWER and together > NARROWER)


def _times(factor: float) -> str:
    return f"{factor:.3g} times" if factor > 1 else f"{1 / factor:.3g} times"


def _tokens(ids: Sequence[int], words: Mapping[int, str]) -> str:
    """Name the last tokens as the tokenizer decodes them, by their ids if it is not known."""
    shown = ids[-SHOWN:]
    if all(id in words for id in shown):
        return " ".join(repr(words[id]) for id in shown)
    return f"token{'s' if len(shown) > 1 else ''} {', '.join(map(str, shown))}"
