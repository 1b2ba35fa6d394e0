"""What is recognised in a crash for want of memory. Sizes in bytes; None is "not known"."""

from __future__ import annotations

from typing import Literal

from diagnostics.facts.frozen import frozen
from diagnostics.facts.gpu import Holder


@frozen
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
    """

    model: str
    weights: int
    gradients: int
    optimizer: str | None = None
    optimizer_state: int | None = None
    present: int | None = None
    library: Literal["torch", "keras"] = "torch"
    batch_rows: int | None = None

    @property
    def total(self) -> int:
        """Bytes of all of it, as far as known."""
        return self.weights + self.gradients + (self.optimizer_state or 0)


@frozen
class OutOfMemoryCrash:
    """Memory was asked for that was not to be had. Sizes in bytes; None is "not known".

    Attributes:
        framework: ``PyTorch``, ``TensorFlow``, ``NumPy``; None if not known.
        device: ``GPU 0``, ``GPU`` if it is not said which, ``CPU``.
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
        while_loading: whether the text shows that a checkpoint was being loaded when it was killed.
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
    while_loading: bool = False
    need: ModelMemory | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether it was a GPU's memory that ran out."""
        return self.device.startswith("GPU")


@frozen
class KeptMemory:
    """A variable of the user's holds the graphs of many batches, or the models of several earlier trainings.

    Attributes:
        name: of the variable: ``losses``, ``history['loss']``.
        kind: graphs with their activations, models with their optimizers, or `History` objects, which reference
            their models.
        count: how many; a model that is in training does not count.
        each: bytes that one of them holds.
    """

    name: str
    kind: Literal["graphs", "models", "histories"]
    count: int
    each: int

    @property
    def size(self) -> int:
        """Bytes that all of them hold, if they are alike."""
        return self.count * self.each
