"""Facts about the numbers that a model is given: a part of some batches, kept for comparison.

As in `facts.pipeline`, None always means "not known".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from diagnostics.facts.frozen import frozen

from .array import Array


@frozen
class InputSample:
    """Some numbers of one input, from several batches.

    Attributes:
        batches: each float32 (rows, channels, positions), in the order in which they were seen. The features of a
            table are channels with one position each; of an image some pixels are positions. Not all of a batch:
            the first rows, and evenly spread channels and positions.
        size: numbers in one example.
        integers: whether it is of an integer type.
        positional: whether its values have a place beside the channel, in two dimensions or more: an image.
        traits: of the same batches, float32 (rows, numbers) each: more rows, and fewer numbers of each, to tell
            rows apart; empty where they were not kept.
    """

    batches: tuple[Array, ...]
    size: int
    integers: bool = False
    positional: bool = False
    traits: tuple[Array, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows in all batches."""
        return sum(map(len, self.batches))

    def numbers(self) -> Array:
        """Return all numbers, float64 (channels, n)."""
        import numpy as np

        by_channel = [np.moveaxis(batch, 1, 0).reshape(batch.shape[1], -1) for batch in self.batches]
        return np.concatenate(by_channel, axis=1).astype(np.float64)


@frozen
class EndToken:
    """The token that ends a text, or any of them, by the configuration of a model of transformers.

    Attributes:
        tokens: their ids.
        of_targets: whether the model generates with a decoder of its own, so that texts end in its targets.
    """

    described: ClassVar[str] = "the end token of the model"

    tokens: tuple[int, ...]
    of_targets: bool = False


@frozen
class CutGenerations:
    """What `generate` returned where the script gave no length, and the lengths of what the model is trained on.

    Attributes:
        rows: that it generated.
        cut: of these, the ones that reach the default length before the model predicts an end token.
        limit: new tokens at that length.
        targets: tokens of each target in the first batch, with its end token.
    """

    described: ClassVar[str] = "texts generated up to the default length"

    rows: int
    cut: int
    limit: int
    targets: Array


@frozen
class PromptEnds:
    """The ends of the latest prompts of `generate`, and the tokens before the answers in the first batch.

    Attributes:
        trained: integers (answers, length), the tokens before each answer whose prompt has no labels that count;
            -1 before the first token.
        generated: integers (prompts, length), the last tokens of each prompt, likewise.
        continued: integers (prompts, n), the first tokens that the model wrote after each; -1 behind the last.
        answers: integers (answers,), the first token of each answer.
        words: of these ids, as the script's tokenizer decodes them; empty if it was not found.
    """

    described: ClassVar[str] = "prompts of generate(), and answers in training"

    trained: Array
    generated: Array
    continued: Array
    answers: Array
    words: Mapping[int, str]


@frozen
class AddedTokens:
    """Tokens for which the script added rows to the embedding of a model of transformers, and wrote none of them.

    Attributes:
        first: the first of them.
        end: the rows of the embedding, all together.
        padding: the token that pads, by the model's configuration; None if it names none.
        trained: whether a gradient is asked for of the embedding, of a copy of it, or of some of its rows.
    """

    described: ClassVar[str] = "tokens that were added to the model"

    first: int
    end: int
    padding: int | None
    trained: bool


@frozen
class Vocabulary:
    """The vocabulary that encoded the texts of a batch.

    Attributes:
        name: of the kind of tokenizer.
        input: the name of the token ids in the batch.
        unknown: the id of a word that it lacks.
        special: ids of special tokens: padding, start, end.
        size: its words; None if not known.
        words: of the ids in the first rows of the batch, as the tokenizer decodes them.
    """

    name: str
    input: str
    unknown: int
    special: frozenset[int]
    size: int | None
    words: Mapping[int, str]


@frozen
class DrawnInputs:
    """The inputs of some batches of training, by name, as in `InputFacts`; also of a run without evaluations."""

    described: ClassVar[str] = "inputs of training"

    inputs: Mapping[str, InputSample]


@frozen
class InputFacts:
    """The inputs of training and of evaluation, by name; positional ones count from "0".

    Attributes:
        training: of the batches that the model was trained on.
        evaluation: of those that it was evaluated on.
        rounds: after how many different steps these were seen; 0 where they were read, not seen.
        outputs: of the model's last layer, as far as its weights tell: a class each, if it tells classes apart.
    """

    described: ClassVar[str] = "inputs of training and of evaluation"

    training: Mapping[str, InputSample]
    evaluation: Mapping[str, InputSample]
    rounds: int = 0
    outputs: int = 0


@frozen
class EvaluationDraws:
    """The first rows of a dataset, as several evaluations got them, in the same order and with the same labels.

    Attributes:
        rounds: evaluations that are compared, at least 3.
        rows: that are.
        changed: share of the rows that differ from those of the first evaluation.
        change: how far, as a root mean square, over how far the rows lie apart.
        turn: cosine of the change from the first to the second, and that from the second to the third: -0.5 where
            each is a new draw, positive where something grows or shrinks.
        likeness: how far rows keep what sets them apart in their class, whatever the order of their numbers: a
            correlation, about 0 where each row is re-created; 1 where some rows keep all of their numbers.
        nearer: by how many standard deviations rows are more like their own versions in the other evaluations
            than like those of other rows of their class.
        shared: whether the training rows come from the same dataset beneath.
    """

    described: ClassVar[str] = "the same rows in several evaluations, in the order of the dataset"

    rounds: int
    rows: int
    changed: float
    change: float
    turn: float
    likeness: float
    shared: bool
    nearer: float = 0.0


@frozen
class TargetSides:
    """The numbers that a regression is to predict, in training and in evaluation.

    Both as the loss compares them with what the model answers, not with what is made of its answers afterwards.

    Attributes:
        training: float64 (n, outputs), some rows of the batches that the model was trained on.
        evaluation: float64 (m, outputs), some rows of those that it was evaluated on, in their order.
        inputs: of both sides; None if not known.
    """

    described: ClassVar[str] = "targets of training and of evaluation"

    training: Array
    evaluation: Array
    inputs: InputFacts | None = None


@frozen
class SwappedChannels:
    """A batch of images (n, channels, height, width) that a convolution reads as (n, height, width, channels).

    Attributes:
        layer: the first convolution.
        shape: of the batch.
    """

    described: ClassVar[str] = "images with their channels first"

    layer: str
    shape: tuple[int, ...]


@frozen
class ScaledTwice:
    """Inputs that are scaled already, before a first layer that scales bytes.

    Attributes:
        layer: its name.
        scale: what it multiplies by: 1 / 255.
        low: least number of a batch.
        high: largest.
    """

    described: ClassVar[str] = "a model that begins with a rescaling"

    layer: str
    scale: float
    low: float
    high: float


@frozen
class AdaptedElsewhere:
    """A first layer that standardises, by the mean and variance of other numbers than the model gets.

    Attributes:
        layer: its name.
        mean: that it subtracts, over all features.
        deviation: that it divides by, likewise.
        input_mean: of a batch.
        input_deviation: of a batch, each feature by itself.
        spread: standard deviation of what it makes of the batch; 1 if it was adapted to such numbers.
    """

    described: ClassVar[str] = "a model that begins with a normalization"

    layer: str
    mean: float
    deviation: float
    input_mean: float
    input_deviation: float
    spread: float
