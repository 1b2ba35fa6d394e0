"""Facts about an exception, live or parsed from text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from diagnostics.facts.gpu import Holder
from diagnostics.facts.pipeline import OUTPUTS_SETTING, Array
from diagnostics.facts.where import Where

from .processes import ProcessSymptom
from .setup import SetupSymptom
from .shapes import ShapeSymptom
from .usage import UsageSymptom

_KERAS = {"keras", "keras_hub", "tensorflow", "tf_keras"}


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
        unhide: where a compiled graph hides the line that failed, what would show it.
        nature: for a failure that no rule recognises: what kind of failure it is, in a sentence; None if that is
            not known either.
    """

    exception: str
    message: str
    frames: tuple[FrameFacts, ...]
    live: bool
    unhide: str | None = None
    nature: str | None = None

    @property
    def first_line(self) -> str:
        """The first line of the message."""
        return next(iter(self.message.strip().splitlines()), "")

    @property
    def in_keras(self) -> bool:
        """Whether it surfaced in Keras or TensorFlow, as far as the frames tell."""
        for frame in reversed(self.frames):
            packages = set(re.split(r"[\\/]", frame.file))
            if not frame.yours and packages & {*_KERAS, "torch"}:
                return "torch" not in packages
        return False

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
        labels_from: where `labels` were read: ``this batch``, ``the rows of loader that were read``.
    """

    label: int | None = None
    labels: Array | None = None
    num_outputs: int | None = None
    ignore_index: int | None = None
    outputs_setting: str = OUTPUTS_SETTING
    labels_from: str = "this batch"


@dataclass(frozen=True)
class RaggedColumns:
    """Examples of different shapes could not be stacked.

    Attributes:
        lengths: lengths of the examples by column, for columns where they differ; empty if not known.
        clash: the two lengths that the message names.
        column: the column that the message names, where its lengths are not known.
        axes: how many axes the examples have, if the message names their shapes; images have three.
    """

    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    clash: tuple[int, int] | None = None
    column: str | None = None
    axes: int | None = None


@dataclass(frozen=True)
class TokenBeyondEmbedding:
    """An embedding was asked for a row that it does not have.

    Attributes:
        ids: the ids asked for, any shape.
        rows: rows of the embedding table.
        offending: the one id that the message names, where the others are not known.
    """

    ids: Array | None = None
    rows: int | None = None
    offending: int | None = None


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
class TextInInputs:
    """A model that computes with numbers was given strings, under whatever name.

    Attributes:
        columns: the inputs that hold strings; empty if they have no names or are not known.
        reads_tokens: whether the model is known to begin with token ids.
    """

    columns: tuple[str, ...] = ()
    reads_tokens: bool = False


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
    """`backward` found nothing to differentiate.

    Attributes:
        adapters: whether a model that PEFT has given adapters was seen in the frames.
    """

    adapters: bool = False


@dataclass(frozen=True)
class DevicesDiffer:
    """One operation was given tensors on several devices.

    Attributes:
        devices: as the framework names them.
        tensors: device by variable name, for tensors in the frame that failed.
        to_numpy: whether the operation was a conversion to NumPy, which works on the CPU only.
    """

    devices: tuple[str, ...]
    tensors: Mapping[str, str] = field(default_factory=dict)
    to_numpy: bool = False


@dataclass(frozen=True)
class MetricGotLogits:
    """A metric of class labels was given continuous scores.

    Attributes:
        shape: of the scores, if known.
    """

    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class LabelsInInputsCrash:
    """A loss was given, and no target apart from the inputs.

    Attributes:
        inputs: names in the input dict; None if not known, and then it is only likely that this is what happened.
        labels: the name among them that holds the labels; None if not known.
    """

    inputs: tuple[str, ...] | None = None
    labels: str | None = None


@dataclass(frozen=True)
class TargetMissing:
    """A loss was given, and no target, neither apart from the inputs nor among them.

    Attributes:
        inputs: names of the inputs; empty if they have none.
    """

    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShapesDiffer:
    """Prediction and target have shapes that the loss cannot bring together.

    Attributes:
        prediction: shape, if known; None in it for a size that is open, as the batch's is in a graph.
        target: the same.
        wants_indices: whether the loss takes class indices and said that the target has an axis too many.
    """

    prediction: tuple[int | None, ...] | None = None
    target: tuple[int | None, ...] | None = None
    wants_indices: bool = False


@dataclass(frozen=True)
class NotProbabilities:
    """A loss that takes the prediction for probabilities was given numbers that are none.

    Attributes:
        lowest: smallest prediction, if known; all are finite then.
        highest: largest prediction.
    """

    lowest: float | None = None
    highest: float | None = None


@dataclass(frozen=True)
class AsynchronousErrorCrash:
    """A device failed at some work, and the host learned of it later.

    Attributes:
        kind: ``assert``: a kernel's own check failed. ``memory access``: a kernel left its memory. ``launch``: a
            kernel died without saying more. ``library``: cuBLAS, cuDNN or another of the vendor's libraries could
            not start. ``nccl``: the ranks' communication failed.
        said: the words that gave it away: ``device-side assert triggered``.
        surfaced: the user's own line at which the host learned of it.
        candidates: the user's own lines, in order of execution, that may have launched what failed. The last of
            them may be `surfaced` itself.
        blocking: whether every launch was waited for, so that the line that failed is the one named; None if that
            is not known.
        kernel: the kernel whose check failed, if the log names it.
        assertion: the check, if the log names it: ``t >= 0 && t < n_classes``.
        simulated: whether the device says of itself that it is a simulation.
    """

    kind: Literal["assert", "memory access", "launch", "library", "nccl"]
    said: str
    surfaced: FrameFacts | None = None
    candidates: tuple[FrameFacts, ...] = ()
    blocking: bool | None = None
    kernel: str | None = None
    assertion: str | None = None
    simulated: bool = False


@dataclass(frozen=True)
class ModelMemory:
    """What training a model holds in memory before any batch, in bytes, and the batch that came.

    Attributes:
        weights: parameters and buffers.
        gradients: one for each trainable parameter.
        optimizer: class name; None if none was found.
        optimizer_state: None if there is no optimizer, or its class is not known.
        present: how much of all this was there when memory ran out: gradients and state come with the first step;
            None if not known.
        library: ``torch`` or ``keras``: decides only the wording of a fix.
        batch_rows: examples in the batch; None if no batch was found.
        batch_length: tokens in each row of it; None if it holds no tokens.
    """

    model: str
    weights: int
    gradients: int
    optimizer: str | None = None
    optimizer_state: int | None = None
    present: int | None = None
    library: Literal["torch", "keras"] = "torch"
    batch_rows: int | None = None
    batch_length: int | None = None

    @property
    def total(self) -> int:
        """Bytes of all of it, as far as known."""
        return self.weights + self.gradients + (self.optimizer_state or 0)


@dataclass(frozen=True)
class OutOfMemoryCrash:
    """Memory was asked for that was not to be had. Sizes in bytes; None is "not known".

    Attributes:
        framework: ``PyTorch``, ``TensorFlow``, ``NumPy``; None if not known.
        device: ``GPU 0``, ``GPU`` if it is not said which, ``CPU``, ``shared memory``.
        tried: what was asked for.
        capacity: of the device, or what this process may use of it.
        free: what was left of `capacity`.
        allocated: held by this process's tensors.
        reserved: held by its framework, tensors included.
        shape: of the tensor that was to be made.
        dtype: of its elements, as the framework names it.
        others: the other processes that hold the same device; None if not known.
        elsewhere: held on the device by other processes, named or not.
        card: all there is on the card; `capacity` may be only what this process may use of it.
        killed: whether the operating system ended the process: nothing could be raised.
        worker: whether that was a worker of a data loader, not the training process.
        need: what the model takes by itself.
    """

    framework: str | None
    device: str
    tried: int | None = None
    capacity: int | None = None
    free: int | None = None
    allocated: int | None = None
    reserved: int | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    others: tuple[Holder, ...] | None = None
    elsewhere: int | None = None
    card: int | None = None
    killed: bool = False
    worker: bool = False
    need: ModelMemory | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether it was a graphics card's memory that ran out."""
        return self.device.startswith("GPU")


@dataclass(frozen=True)
class KeptGraphs:
    """A variable of the user's holds the graphs of many batches, with their activations.

    Attributes:
        name: of the variable: ``losses``, ``history['loss']``.
        count: how many graphs it holds.
        each: bytes of activations that one of them holds.
    """

    name: str
    count: int
    each: int

    @property
    def size(self) -> int:
        """Bytes that all of them hold, if the batches are alike."""
        return self.count * self.each


Symptom = (
    LabelBeyondOutputs
    | RaggedColumns
    | TokenBeyondEmbedding
    | TokensMissing
    | TextInInputs
    | LossMissing
    | NoPathToParameters
    | DevicesDiffer
    | MetricGotLogits
    | LabelsInInputsCrash
    | TargetMissing
    | ShapesDiffer
    | NotProbabilities
    | AsynchronousErrorCrash
    | OutOfMemoryCrash
    | KeptGraphs
    | ShapeSymptom
    | UsageSymptom
    | ProcessSymptom
    | SetupSymptom
)
"""What is recognised in a crash."""
