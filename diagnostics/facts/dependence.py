"""Facts about what each answer of a model depends on, measured on a copy in evaluation mode.

As in `facts.pipeline`, None always means "not known".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen

from .where import Where

REFUSED = "calling the model on part of a batch, which your script does not do, raised"
"""Why a part could not be measured; the name of the exception follows."""

Mixer = Literal["softmax", "reshape", "recurrent", "attention"]
"""An operation along the axis that counts the examples of a batch."""


ModeArgument = Literal["nothing", "something", "always", "unknown"]
"""What a call of dropout is told of the model's mode: it leaves the argument out, gives it, or gives True."""


@frozen
class ActiveDropout:
    """A call of dropout that drops in evaluation mode.

    Attributes:
        function: ``dropout``, ``scaled_dot_product_attention``, …
        rate: that it drops.
        told: what the call says of the mode.
        where: the line of the user's code that calls it; None if not known.
    """

    function: str
    rate: float
    told: ModeArgument
    where: Where | None = None


@frozen
class RandomStateFacts:
    """A recurrent layer whose first state is drawn at random in evaluation mode.

    Attributes:
        layer: its name and class.
        function: that draws.
        change: with the same inputs and another draw, the largest change of any answer.
        spread: standard deviation of the answers over the examples, the largest of any number in an answer.
        has_target: whether the answers are compared with a target.
    """

    layer: str
    function: str
    change: float
    spread: float
    has_target: bool


@frozen
class MixingFacts:
    """One operation that combines the examples of a batch.

    Attributes:
        kind: what it does.
        name: the module that does it, ``encoder.lstm (LSTM)``, or the function: ``softmax``.
        shape: of the tensor that it was given, at the full size of the batch.
        axis: which axis of `shape` counts the examples.
        result: the shape that it made of it; only for ``reshape``.
        where: the line of the user's code that calls it; None if not known.
    """

    kind: Mixer
    name: str
    shape: tuple[int, ...]
    axis: int
    result: tuple[int, ...] = ()
    where: Where | None = None


@frozen
class FutureFacts:
    """A language model, given another token at one position, asked about the position before.

    Attributes:
        change: the largest change of the answer that is to predict the replaced token.
        spread: standard deviation of the answers over positions and examples.
        position: the position of that answer, counted from 0.
        length: number of positions.
        input: the name of the tokens among the model's inputs; positional ones count from "0".
        past: the largest change of the same answer when every token before its position is replaced; None if there
            is none.
    """

    change: float
    spread: float
    position: int
    length: int
    input: str
    past: float | None = None


@frozen
class RemovedPadding:
    """Predictions for padded rows, beside those for the same rows without padding.

    Attributes:
        rows: that were compared.
        changed: of these, with another class, or with another value if the predictions are not of classes.
        by_class: whether classes were compared.
        change: the largest change of a number in a prediction, the median over the rows.
        spread: standard deviation of the predictions over the rows, with padding.
        noise: the largest change of a number when rows are run again, without the others.
        moved: whether the padding was moved to the other end, for a model that needs one length.
    """

    rows: int
    changed: int
    by_class: bool
    change: float
    spread: float
    noise: float
    moved: bool = False


@frozen
class PackingFacts:
    """A language model whose rows hold several documents, given another first document in a few of them.

    Losses are those of the second document's targets, each the mean over the rows.

    Attributes:
        input: the name of the tokens among the model's inputs; positional ones count from "0".
        mark: what shows that a row holds several documents: "positions" that restart, "segments" that are
            numbered, or only "labels" that are ignored at the beginning of each.
        marker: the name of the input of these positions or numbers; empty for labels.
        rows: that were run.
        documents: in these rows.
        closed: whether all documents begin with the same token, or all end with the same one.
        separated: whether no document's first token is a target.
        change: the largest change of a log-probability in a second document when the first one is exchanged.
        spread: standard deviation of the log-probabilities over the positions.
        loss: in the rows as they are.
        loss_exchanged: after another first document.
        loss_moves: the mean absolute difference of the two.
        loss_alone: of the second document as a row of its own; None if the model takes no such row.
    """

    input: str
    mark: Literal["positions", "segments", "labels"]
    marker: str
    rows: int
    documents: int
    closed: bool
    separated: bool
    change: float
    spread: float
    loss: float
    loss_exchanged: float
    loss_moves: float
    loss_alone: float | None = None


@frozen
class PaddingFacts:
    """What padding does to the predictions, and to the effect of the words on them.

    Attributes:
        input: the name of the padded input; positional ones count from "0".
        rows: whose words were replaced, those with the most padding.
        longest: positions of padding at most.
        with_padding: change of the prediction when the words of a row are replaced, the median over the rows.
        without: the same in rows without padding.
        fails: rows whose prediction is NaN or infinite without the padding, and finite with it.
        hides_words: whether a padding mask that attention was given leaves out every word, and no padding; then
            nothing else was measured.
        spread: standard deviation of the predictions over the rows with at least half as much padding as the
            longest, with their padding.
        blank: the token that the padding consists of; None if it is not a token, or not known.
        some_full: whether a row of the batch has no padding, as if the batch is padded to its longest row.
        removed: the predictions without padding; None if not all are finite, or there was no time for them.
        masked: whether another input of the model tells the words from the padding.
        mask: the name of the padding mask in the loader's batch that the model does not get, or None; positional
            ones count from "0".
        reader: the module that takes an ``attention_mask`` and is given none, ``bert (BertModel)``; None if there
            is none.
    """

    input: str
    rows: int
    longest: int
    with_padding: float
    without: float
    fails: int = 0
    hides_words: bool = False
    spread: float = 0.0
    blank: int | None = None
    some_full: bool = False
    removed: RemovedPadding | None = None
    masked: bool = False
    mask: str | None = None
    reader: str | None = None


@frozen
class PooledPadding:
    """The mean of a model's output over the positions of a padded row, beside that of the row without padding.

    The model returns a vector for each position, and one of its inputs marks the padding.

    Attributes:
        input: the name of the padded input.
        rows: that were compared.
        changed: of these, whose mean changes by more than half of the standard deviation of the means.
        longest: positions of padding at most.
        change: the largest change of a number in a mean, the median over the rows.
        spread: standard deviation of the means over the rows, with padding.
        width: numbers of a vector.
        evaluated: whether the batch is one without gradients, and not of training.
    """

    input: str
    rows: int
    changed: int
    longest: int
    change: float
    spread: float
    width: int
    evaluated: bool


@frozen
class ShiftedPositions:
    """Predictions of an evaluation for rows that are padded in front, beside those without the padding.

    The padding is masked: other tokens in its place change nothing. Training had no padding in front.

    Attributes:
        input: the name of the tokens.
        rows: that were compared.
        changed: of these, with another class, or with another value if the predictions are not of classes.
        longest: positions of padding at most.
        reader: the module that accepts ``position_ids`` but gets none, such as ``GPT2Model``, or None.
        with_positions: how many predictions change if each row's positions are counted from its first word; None
            without a reader.
    """

    input: str
    rows: int
    changed: int
    longest: int
    reader: str | None = None
    with_positions: int | None = None


@frozen
class SamenessFacts:
    """Answers that are to be the inputs, beside these; all as shares of how much the inputs differ.

    How much they differ is the root mean square of their deviations from the mean input.

    Attributes:
        answers: how much the answers differ, from example to example.
        apart: how far the mean answer is from the mean input.
        level: how far the mean input is from 0.
        numbers: in an answer.
        known: whether the target is known to be the input; otherwise it has its size, and no target is known.
        linear: share of the squared differences of half of the inputs that a few principal components of the other
            half keep; None if there are too few inputs.
        components: how many these are.
        terms: of the loss for these inputs, if it is a sum that was computed again; empty otherwise.
    """

    answers: float
    apart: float
    level: float
    numbers: int
    known: bool = True
    linear: float | None = None
    components: int = 0
    terms: tuple[float, ...] = ()


@frozen
class CopyFacts:
    """A model whose targets are the tokens of one of its inputs, given random tokens in their place.

    Attributes:
        input: the name of that input; positional ones count from "0".
        share: of the positions whose answer is the random token that stands there.
        source: another input of tokens, which the answers are meant to be made of; None if there is none, and then
            no answer depends on later tokens, or the model is to tell those that are masked.
        length: number of positions.
        masked: whether it is one of transformers that is to tell the tokens that are masked in its input, or one
            with a `mask`.
        mask: the token at most positions that have a target, and at no others; None if no token is, or if no
            prediction depends on later tokens.
        targets: in the batch.
        hidden: of these, the ones that are `mask`.
    """

    input: str
    share: float
    source: str | None
    length: int
    masked: bool = False
    mask: int | None = None
    targets: int = 0
    hidden: int = 0


@frozen
class OrderFacts:
    """A model with attention over the tokens of a row, given the same tokens in another order.

    Attributes:
        change: the largest change of any answer; where there is one for each position, of that to the same token.
        spread: standard deviation of the answers over examples and positions.
        length: positions in a row.
        by_position: whether there is an answer for each position.
        attention: the module or function.
        conflicts: where each position has a target: of the pairs of equal tokens in a row, the share whose targets
            differ; None if not known.
        by_chance: the same share of any two positions.
    """

    change: float
    spread: float
    length: int
    by_position: bool
    attention: str
    conflicts: float | None = None
    by_chance: float | None = None


@frozen
class LinearFacts:
    """A model whose answers are a linear function of its input, up to a sigmoid or a softmax at the end.

    Attributes:
        layers: those that follow each other, at least two, in the order in which they run: halving the weights of
            any of them halves how far answers lie apart.
        narrowest: the least number of outputs of any of them.
        inputs: numbers in an example.
        outputs: of the last of these layers.
    """

    layers: tuple[str, ...]
    narrowest: int
    inputs: int
    outputs: int


@frozen
class LossAtTarget:
    """What a loss of the script's own makes of answers to rows of a batch.

    Attributes:
        name: of the loss.
        right: its value for answers that equal the targets, but for 1% of the way to their mean.
        constant: for the mean target in the place of each answer.
        reached: for what the trained model answers.
        in_unit_range: whether the targets have two axes or more beside the rows', and lie from 0 to 1.
        scale_free: whether doubling the answers changes nothing.
    """

    described: ClassVar[str] = "the loss of right predictions"

    name: str
    right: float
    constant: float
    reached: float
    in_unit_range: bool
    scale_free: bool


@frozen
class SwappedArguments:
    """A loss that takes the model's answers first and the targets second, by its argument names or by its values.

    By its values, it is a cross entropy of Keras with its arguments exchanged, or only when called the other way
    round does it have its least value for shares of classes that equal the targets.

    Attributes:
        name: of the loss.
        first: the name of its first argument: ``y_pred``.
        second: of its second: ``y_true``.
        as_called: its value on a batch, called with targets and answers, as the framework does.
        turned: with answers and targets.
        entropy: the cross entropy of Keras that it equals, with its arguments exchanged; None if not known.
        right: its value as called for answers that nearly equal the targets; None where it was not needed.
        surer: likewise for answers that are nearly certain of the class with the largest share.
    """

    described: ClassVar[str] = "a loss that takes its arguments the other way round"

    name: str
    first: str
    second: str
    as_called: float
    turned: float
    entropy: str | None = None
    right: float | None = None
    surer: float | None = None


@frozen
class StatisticsFacts:
    """A classifier with batch norm, asked for the classes of training rows in evaluation mode.

    Attributes:
        rows: with known labels.
        right_with_running: of these, with the running statistics.
        right_with_own: of these, with the statistics of the batch itself, and the same weights.
        most_frequent: rows with the label that most of them have.
        memory: steps that the running statistics are averaged over: 1 / the weight of the latest batch. Infinite
            for a mean of all, and for statistics that do not move.
    """

    rows: int
    right_with_running: int
    right_with_own: int
    most_frequent: int
    memory: float


@frozen
class UntrainedFacts:
    """Weights that a checkpoint lacked, that were frozen when the run ended, and that nothing has changed.

    Attributes:
        weights: sizes, by name, of the matrices on which the predictions depend.
        last: whether the last layer that runs has one of them, so that no trained layer follows.
    """

    weights: Mapping[str, int]
    last: bool


@frozen
class DependenceFacts:
    """What the answers of a model depend on: other examples, later tokens, each of its inputs.

    Every number comes from a copy in evaluation mode, run on a few examples of one batch that the model was
    trained on, with equal random numbers in all runs.

    Attributes:
        examples: in the batch.
        compared: how many of them were run.
        change: the largest change of the answer to one example when all others are replaced.
        spread: standard deviation of the answers over the examples.
        scale: root mean square of the answers.
        mixing: the operation that explains `change`, where one is proved.
        ends_in_it: whether the answers themselves are its result: they sum to 1 over the examples.
        shuffled: whether the rows are known to come in random order, so that neighbours have nothing to do with
            each other; None if not known.
        future: of a language model that predicts the next token.
        inputs: by the name of each input that could be tested, the largest change of any answer when it alone is
            replaced by that of other examples: in evaluation mode, in training mode, and with other weights.
        of_first: the inputs of which that of the first example alone changes answers, those to all examples.
        dropout: the dropout that is on in evaluation mode; empty if none is, or not known.
        noise: with the same inputs and other random numbers, the largest change of any answer; 0 where no dropout
            is on, None if not known.
        padding: of a model that gives one answer for a row that may be padded.
        packing: of a language model whose rows hold several documents.
        copy: of a model whose targets are one of its inputs.
        why_not: why a part could not be measured, by ``examples``, ``future``, ``inputs``, ``steps``, ``padding``,
            ``packing``, ``copy``, ``linear``, ``dropout``, ``order`` and ``statistics``.
        trained: whether the model was the one at the run's end.
        moved: the largest change of the answer to an example when all come in reverse order; None if not known.
        sameness: of a model whose target is its input, or may be; None otherwise.
        linear: of a model of several layers that is linear; None if it is not, or not known.
        dropped: the least share of answers that are exactly 0 in training mode, where none is in evaluation mode;
            None if not known, as where some are.
        shifted: of a batch without gradients that is padded in front, if training was not; None otherwise.
        pooled: of a model that returns a vector for each position; None of others, and without a masked padding.
        order: of a model with attention over tokens; None otherwise.
        random_state: of a recurrent layer; None if there is none.
        first_step_of: steps in a sequence of which the first alone changes the answer; None if that is not so, or
            not known.
        last_step_of: the same of the last step.
        statistics: of a classifier with batch norm; None otherwise.
        reads_ahead: whether the answer for a token depends on later ones; None if not known.
        untrained: weights that are random; None if there are none, or not known.
    """

    described: ClassVar[str] = "what the predictions depend on"

    examples: int = 0
    compared: int = 0
    change: float | None = None
    spread: float | None = None
    scale: float | None = None
    mixing: MixingFacts | None = None
    ends_in_it: bool = False
    shuffled: bool | None = None
    future: FutureFacts | None = None
    inputs: Mapping[str, float] = field(default_factory=dict)
    of_first: tuple[str, ...] = ()
    dropout: tuple[ActiveDropout, ...] = ()
    noise: float | None = None
    padding: PaddingFacts | None = None
    packing: PackingFacts | None = None
    copy: CopyFacts | None = None
    why_not: Mapping[str, str] = field(default_factory=dict)
    trained: bool = False
    moved: float | None = None
    sameness: SamenessFacts | None = None
    linear: LinearFacts | None = None
    dropped: float | None = None
    shifted: ShiftedPositions | None = None
    pooled: PooledPadding | None = None
    order: OrderFacts | None = None
    random_state: RandomStateFacts | None = None
    first_step_of: int | None = None
    last_step_of: int | None = None
    statistics: StatisticsFacts | None = None
    reads_ahead: bool | None = None
    untrained: UntrainedFacts | None = None
