"""What can be read out of an exception, or out of the text of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .facts import OUTPUTS_SETTING, Array
from .finding import Where


@dataclass(frozen=True)
class FrameFacts:
    """One line of a traceback.

    Attributes:
        yours: whether the file is the user's own, not an installed package or the standard library.
    """

    file: str
    line: int
    function: str
    code: str | None = None
    yours: bool = False


@dataclass(frozen=True)
class CrashFacts:
    """An exception, or the text of one.

    Attributes:
        frames: outermost first.
        live: whether the exception itself was at hand (its frames could be read), not only its text.
    """

    exception: str
    message: str
    frames: tuple[FrameFacts, ...]
    live: bool

    @property
    def first_line(self) -> str:
        """The first line of the message."""
        return next(iter(self.message.strip().splitlines()), "")

    @property
    def where(self) -> Where | None:
        """The innermost line that is the user's own."""
        for frame in reversed(self.frames):
            if frame.yours:
                return Where(frame.file, frame.line, frame.function)
        return None


@dataclass(frozen=True)
class LabelBeyondOutputs:
    """The loss was asked for the output of a class that has none.

    Attributes:
        label: the offending label.
        labels: all labels of the batch, any shape.
        num_outputs: size of the class axis.
        ignore_index: label that the loss leaves out; None if it leaves out none.
        outputs_setting: how the number of outputs is set, with ``{}`` where the number goes.
    """

    label: int | None = None
    labels: Array | None = None
    num_outputs: int | None = None
    ignore_index: int | None = None
    outputs_setting: str = OUTPUTS_SETTING


@dataclass(frozen=True)
class RaggedColumns:
    """Examples of different shapes could not be stacked.

    Attributes:
        lengths: lengths of the examples by column, for columns where they differ; empty if not known.
        clash: the two lengths that the message names.
    """

    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    clash: tuple[int, int] | None = None


@dataclass(frozen=True)
class TokenBeyondEmbedding:
    """An embedding was asked for a row that it does not have.

    Attributes:
        ids: the ids asked for, any shape.
        rows: rows of the embedding table.
    """

    ids: Array | None = None
    rows: int | None = None


@dataclass(frozen=True)
class TokensMissing:
    """A model or a collator of tokens was given no tokens.

    Attributes:
        received: the names that did arrive; None if not known.
        text_columns: those of the dataset's columns that hold strings; None if not known.
    """

    received: tuple[str, ...] | None = None
    text_columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class LossMissing:
    """The model returned no loss.

    Attributes:
        returned: names the model returned.
        received: names the model was given.
    """

    returned: tuple[str, ...] = ()
    received: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoPathToParameters:
    """`backward` found nothing to differentiate."""


@dataclass(frozen=True)
class DevicesDiffer:
    """One operation was given tensors on several devices.

    Attributes:
        devices: as the framework names them.
        tensors: device by variable name, for tensors in the frame that failed.
    """

    devices: tuple[str, ...]
    tensors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetricGotLogits:
    """A metric of class labels was given continuous scores.

    Attributes:
        shape: of the scores, if known.
    """

    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class LabelsInInputs:
    """A loss was given, and no target apart from the inputs.

    Attributes:
        inputs: names in the input dict; None if not known.
        labels: the name among them that holds the labels; None if not known.
    """

    inputs: tuple[str, ...] | None = None
    labels: str | None = None


@dataclass(frozen=True)
class ShapesDiffer:
    """Prediction and target have shapes that the loss cannot bring together.

    Attributes:
        prediction: shape, if known.
        target: shape, if known.
    """

    prediction: tuple[int, ...] | None = None
    target: tuple[int, ...] | None = None


Symptom = (
    LabelBeyondOutputs
    | RaggedColumns
    | TokenBeyondEmbedding
    | TokensMissing
    | LossMissing
    | NoPathToParameters
    | DevicesDiffer
    | MetricGotLogits
    | LabelsInInputs
    | ShapesDiffer
)
"""What is recognised in a crash."""
