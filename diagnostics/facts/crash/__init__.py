"""Facts about an exception, live or parsed from text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from diagnostics.facts.frozen import frozen
from diagnostics.facts.where import Where

from .data import DataSymptom
from .memory import KeptMemory, OutOfMemoryCrash
from .shapes import ShapeSymptom

# What no rule needs of huge messages is cut out, so that reading them ends: their beginning and their end stay.
MAX_CHARACTERS = 100_000  # characters of a message: a checkpoint that lists a thousand parameters
KEPT = 40_000  # of a longer one, at either end
END = 256  # characters of a long word that are kept, at either end
_LONG = re.compile(r"(?<!\S)\S{769,}|(?<!\s)\s{769,}")
"""A sequence of DNA, a hex dump, a key: no path and no name is that long, and the time of a pattern that looks at
each part of a word grows with the square of its length."""


def without_long_words(text: str) -> str:
    """Return a text in which of each huge word, and of each huge gap, only the ends are left."""
    return _LONG.sub(lambda found: f"{found[0][:END]}…{found[0][-END:]}", text)


def _bounded(message: str) -> str:
    """Return an exception's message in a length that every pattern can search; the same for its own result."""
    if len(message) > MAX_CHARACTERS:
        message = f"{message[:KEPT]}\n…\n{message[-KEPT:]}"
    return without_long_words(message)


_KERAS = {"keras", "keras_hub", "tensorflow", "tf_keras"}
_OF_KERAS = re.compile(
    r"Error when checking (?:model )?(?:input|target)|\b[Kk]eras\b|tensorflow|passed for an output of shape"
    r"|`y_(?:true|pred)`|\bShapes \(None, |`logits` and `labels`|is incompatible with the layer"
    r"|Received: target\.shape=|"
    r"^No gradients provided for any variable|^Cannot batch tensors with different shapes in component"
)
"""Words that only Keras or TensorFlow writes."""


@frozen
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

    def __post_init__(self) -> None:
        if self.code is not None:
            object.__setattr__(self, "code", _bounded(self.code))


@frozen
class FailedExpression:
    """The expression that a live exception came of, and what its names held.

    Attributes:
        code: source of the innermost expression of the user's own.
        values: its parts whose value is known, by their source: ``("len(rows)", "0")``.
        condition: of the statement that raised it, if it is a check: the user's own, or an installed package's.
        raises_if: whether the check raises where the condition holds; else where it does not.
        condition_values: the condition's parts, as `values`.
    """

    code: str
    values: tuple[tuple[str, str], ...] = ()
    condition: str | None = None
    raises_if: bool = True
    condition_values: tuple[tuple[str, str], ...] = ()


@frozen
class CrashFacts:
    """An exception, or the text of one.

    Attributes:
        message: in a length that can be searched, see `_bounded`.
        frames: outermost first.
        live: whether the exception itself was at hand (its frames could be read), not only its text.
        unhide: where a compiled graph hides the line that failed, what would show it.
        nature: for a failure that no rule recognises: what kind of failure it is, in a sentence; None if that is
            not known either.
        failed: of a live exception; None if its source could not be read.
    """

    exception: str
    message: str
    frames: tuple[FrameFacts, ...]
    live: bool
    unhide: str | None = None
    nature: str | None = None
    failed: FailedExpression | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _bounded(self.message))

    @property
    def first_line(self) -> str:
        """The first line of the message."""
        return next(iter(self.message.strip().splitlines()), "")

    @property
    def in_keras(self) -> bool:
        """Whether it surfaced in Keras or TensorFlow, as far as the frames tell; without any, the words."""
        if not self.frames:
            return _OF_KERAS.search(self.message[:2_000]) is not None
        for frame in reversed(self.frames):
            packages = set(re.split(r"[\\/]", frame.file))
            if not frame.yours and packages & {*_KERAS, "torch"}:
                return "torch" not in packages
        return False

    @property
    def fix_libraries(self) -> tuple[str, ...]:
        """What a fix is worded for."""
        return ("keras" if self.in_keras else "torch",)

    @property
    def where(self) -> Where | None:
        """The innermost line that is the user's own."""
        for frame in reversed(self.frames):
            if frame.yours:
                return Where(frame.file, frame.line, frame.function)
        return None


@frozen
class DevicesDiffer:
    """One operation was given tensors on several devices.

    Attributes:
        devices: as the framework names them.
        tensors: device by variable name, for tensors in the frame that failed.
        odd: name in the operation, and device, of the one argument that the message sets apart from the others.
        registered: names in `tensors` of parameters and buffers, which move with their module.
    """

    devices: tuple[str, ...]
    tensors: Mapping[str, str] = field(default_factory=dict)
    odd: tuple[str, str] | None = None
    registered: tuple[str, ...] = ()


@frozen
class AsynchronousErrorCrash:
    """A device failed at some work, and the host learned of it later.

    Attributes:
        kind: ``assert``: a kernel's own check failed. ``memory access``: a kernel left its memory. ``launch``: a
            kernel died without saying more.
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

    kind: Literal["assert", "memory access", "launch"]
    said: str
    surfaced: FrameFacts | None = None
    candidates: tuple[FrameFacts, ...] = ()
    blocking: bool | None = None
    kernel: str | None = None
    assertion: str | None = None
    simulated: bool = False


@frozen
class DtypesDiffer:
    """An operation got tensors of different dtypes, or of a dtype that it does not take.

    Attributes:
        kind: ``operands``: two tensors of one operation. ``indices``: ids for an embedding. ``classes``: a target
            that must be class indices. ``target``: a target that must be floating point. ``no kernel``: the
            operation is not implemented for the dtype on this device. ``integers``: integers where the operation
            needs floating point. ``result``: a result does not go into a tensor of integers, in a loss or in
            place.
        got: dtype of the tensor that does not fit, as in ``float64``; None if unknown.
        wanted: the dtype that the other tensor has, or the operation takes; None if unknown.
        operation: name of the kernel, where the message names one.
        tensors: dtype by variable name, for tensors in the frame that failed.
        library: whose wording it is: ``torch`` or ``tensorflow``.
    """

    kind: Literal["operands", "indices", "classes", "target", "result", "no kernel", "integers"]
    got: str | None = None
    wanted: str | None = None
    operation: str | None = None
    tensors: Mapping[str, str] = field(default_factory=dict)
    library: str = "torch"


@frozen
class CheckpointKeysDiffer:
    """A state dict and a model have different keys.

    Attributes:
        model: class name; empty if unknown.
        missing: keys of the model that the checkpoint lacks, in its order.
        unexpected: keys of the checkpoint that the model lacks.
    """

    model: str = ""
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


@frozen
class LauncherTail:
    """A launcher reports that a process failed, and not why.

    Attributes:
        launcher: ``torchrun``, ``accelerate``, ``torch.multiprocessing``, ``srun``, ``mpirun``.
        rank: the process that failed first; None if unknown.
        exit_code: of it, negative for a signal; None if unknown.
    """

    launcher: str
    rank: int | None = None
    exit_code: int | None = None


@frozen
class WaitingRank:
    """A rank that says in a log which collective it gave up.

    Attributes:
        operation: ``ALLREDUCE``.
        number: of the collective, counted by the communication library on each rank.
        elements: number of elements that it puts in; None if unknown.
    """

    rank: int
    operation: str
    number: int
    elements: int | None = None


@frozen
class CollectiveTimeoutCrash:
    """A collective or a rendezvous was given up after its time limit.

    Attributes:
        rank: that gave up; None if unknown.
        operation: ``ALLREDUCE``; None if unknown.
        number: of the collective, counted by the communication library; None if unknown.
        seconds: time limit; None if unknown.
        joined: processes that came to a rendezvous, and how many were expected; None if it was no rendezvous.
        waiting: the ranks whose messages the same text holds, in order, the first collective of each.
    """

    rank: int | None = None
    operation: str | None = None
    number: int | None = None
    seconds: float | None = None
    joined: tuple[int, int] | None = None
    waiting: tuple[WaitingRank, ...] = ()


@frozen
class KnownFailure:
    """A message whose cause is the same wherever it is raised.

    Attributes:
        rule: the rule that reports it.
        cause: what is wrong, in a sentence or two.
        fixes: what to change, the most likely first.
        said: the words that gave it away.
        kind: which of the rule's causes it is; empty if the rule has no names for them.
        what: the value that the message names; None if it names none.
    """

    rule: str
    cause: str
    fixes: tuple[str, ...]
    said: str
    kind: str = ""
    what: str | None = None


Symptom = (
    DataSymptom
    | DevicesDiffer
    | AsynchronousErrorCrash
    | OutOfMemoryCrash
    | KeptMemory
    | ShapeSymptom
    | DtypesDiffer
    | CheckpointKeysDiffer
    | LauncherTail
    | CollectiveTimeoutCrash
    | KnownFailure
)
"""What is recognised in a crash."""
