"""How long the parts of a training step take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from diagnostics.facts.frozen import frozen
from diagnostics.facts.where import Where

Part = Literal["loader", "transfer", "forward", "loss", "backward", "optimizer", "step", "diagnostics", "rest"]

PARTS: Final[Mapping[Part, str]] = {
    "loader": "loader",
    "transfer": "batch to model",
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "optimizer": "optimizer",
    "step": "training step",
    "diagnostics": "diagnostics",
    "rest": "rest",
}
"""Parts of a step in their order, each with its name in a report.

``loader`` is the wait for the next batch; ``transfer`` lasts from there to the call of the model; ``step`` is the
compiled step of Keras, from forward to optimizer; ``diagnostics`` is this library's own work; ``rest`` is
everything else: logging, ``.item()``, clipping, callbacks.
"""


@frozen
class BatchSource:
    """Where the batches of a training come from, as far as it matters for speed; None for what is not known.

    Attributes:
        kind: of the source.
        workers: that load batches beside the training, 0 for none.
        persistent: whether they survive the end of an epoch.
        pinned: whether batches are put into pinned memory.
        prefetches: whether batches are prepared ahead (tf.data).
        caches: whether what was read is kept (tf.data).
        items: the script's code that makes an item: ``__getitem__`` of its dataset, or ``__iter__``.
    """

    kind: Literal["DataLoader", "PyDataset", "tf.data", "other"] = "other"
    workers: int | None = None
    persistent: bool | None = None
    pinned: bool | None = None
    prefetches: bool | None = None
    caches: bool | None = None
    items: Where | None = None


@frozen
class StepTimes:
    """The time of the steps of a training, by part, as the host sees it.

    Attributes:
        steps: optimizer steps that were measured.
        skipped: first steps that were left out: warm-up and compilation.
        seconds: by part, over all measured steps; parts that cannot be told apart are missing.
        batches: that the loader returned for these steps; 0 if it is not known.
        source: of the batches; None if they do not come from a loader that is observed.
        asynchronous: whether an accelerator computes while the host goes on, so that its time appears wherever the
            host waits for it.
        cores: processors that this process may use.
        advice: of a report that was read from a file, whose source is not known.
    """

    steps: int
    skipped: int
    seconds: Mapping[Part, float]
    batches: int = 0
    source: BatchSource | None = None
    asynchronous: bool = False
    cores: int = 1
    advice: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Seconds of all measured steps."""
        return sum(self.seconds.values())

    def share(self, part: Part) -> float:
        """Return the share of a part, from 0 to 1."""
        return self.seconds.get(part, 0.0) / self.total
