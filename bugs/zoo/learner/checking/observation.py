"""Sees what a script really does: which model it trains, with which rows, and on which rows it evaluates.

Nothing here listens to what a script prints. `Observation` is used twice: in the process of a learner's script
(`witness`), and in the one that evaluates the model that came of it (`exam`).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import sys
import time
from typing import Any

import numpy as np

from bugs.zoo.learner.checking.rows import Rows, inputs_of
from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import Patches

READ_S = 30.0  # seconds to read the data of a Keras model once more, after its training
SMALL_KERAS_MODELS = 50  # that are looked at where no `fit` was seen


class Observation:
    """Observes PyTorch and Keras on TensorFlow, from `begin` on, once the script imports them.

    Attributes:
        trained: rows of the forward passes with gradients, in training mode; for Keras, of the data of `fit`.
        evaluated: rows of the other forward passes; for Keras, of the data of `evaluate`.
        whole: whether every row could be read; not those on another device than the CPU.
    """

    def __init__(self) -> None:
        self.trained, self.evaluated, self.whole = Rows(), Rows(), True
        self._patches, self._depth = Patches(), 0
        self._calls: dict[int, list[Any]] = {}  # by id: a module that was called with gradients, and how often
        self._optimizers: dict[int, tuple[Any, set[int]]] = {}  # by id: it, and the ids of its parameters
        self._updates = 0
        self._fitted: dict[int, tuple[Any, int]] = {}  # by id: a Keras optimizer's counter, and what it was before
        self._last: Any = None  # the Keras model that was fitted last; a search frees the ones before it
        self._data: list[tuple[Any, Rows]] = []  # what `fit` and `evaluate` were given

    def begin(self) -> None:
        """Observe from now on."""
        after_import("torch", self._with_torch)
        after_import("keras.src.backend.tensorflow.trainer", self._with_keras)

    def end(self) -> None:
        """Observe no more, and read the rows of Keras' data."""
        self._patches.undo()
        until = time.monotonic() + READ_S
        for data, rows in self._data:
            try:
                _read(data, rows, until)
            except Exception:  # data that can be read only once, or that the script has broken
                self.whole = False
        self._data.clear()

    @property
    def updates(self) -> int:
        """How many steps the optimizers have taken, whether or not they changed a weight of the model."""
        return self._updates + sum(max(0, int(counter) - was) for counter, was in self._counters())

    @property
    def models(self) -> int:
        """How many models were trained. What shares weights or an optimizer is one."""
        sets = [set(ids) for _, ids in self._optimizers.values()]
        for module, _ in self._calls.values():
            weights = {id(parameter) for parameter in module.parameters()}
            if touched := [each for each in sets if each & weights]:
                sets = [each for each in sets if not each & weights] + [weights.union(*touched)]
        return len(sets) + sum(int(counter) > was for counter, was in self._counters())

    def weights(self) -> dict[str, np.ndarray[Any, Any]] | None:
        """Return the weights of the model that was trained most, by name, or Keras' last, by position; or None."""
        modules = self._trained_modules()
        if modules:
            return weights_of(max(modules, key=lambda called: called[1])[0])
        trained = any(int(counter) > was for counter, was in self._counters())
        return weights_of(self._last) if trained and self._last is not None else None

    def _trained_modules(self) -> list[list[Any]]:
        """Return the called modules that have weights of an optimizer that stepped; else all that were called."""
        if not self._optimizers:
            return []
        stepped = set().union(*(ids for _, ids in self._optimizers.values()))
        called = list(self._calls.values())
        return [c for c in called if any(id(p) in stepped for p in c[0].parameters())] or called

    def _counters(self) -> list[tuple[Any, int]]:
        if not self._fitted and "keras" in sys.modules and hasattr(sys.modules["keras"], "Model"):
            keras = sys.modules["keras"]  # a loop of the script's own, with `train_on_batch` or a tape
            models = [each for each in gc.get_objects() if issubclass(type(each), keras.Model)]
            for model in models[:SMALL_KERAS_MODELS]:
                self._note(model, 0)
                self._last = model if _iterations(model) else self._last
        return list(self._fitted.values())

    def _note(self, model: Any, was: int) -> None:
        counter = getattr(getattr(model, "optimizer", None), "iterations", None)
        if counter is not None:
            self._fitted.setdefault(id(counter), (counter, was))

    def _with_torch(self, torch: Any) -> None:
        if not hasattr(torch, "nn"):
            return
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._torch = torch
        register_optimizer_step_post_hook(self._stepped)
        self._patches.around(torch.nn.Module, "__call__", self._around_call)

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if is_own_run():
            return
        self._updates += 1
        if id(optimizer) not in self._optimizers:
            ids = {id(p) for group in optimizer.param_groups for p in group["params"]}
            self._optimizers[id(optimizer)] = (optimizer, ids)

    def _around_call(self, call: Any) -> Any:
        seen = self

        def observed(module: Any, *arguments: Any, **options: Any) -> Any:
            seen._depth += 1
            try:
                return call(module, *arguments, **options)
            finally:
                seen._depth -= 1
                if not seen._depth and not is_own_run():
                    with contextlib.suppress(Exception):
                        seen._called(module, arguments, options)

        return observed

    def _called(self, module: Any, arguments: Any, options: Any) -> None:
        if self._torch._C._current_graph_task_id() >= 0:  # a checkpoint computes a layer again
            return
        if next(iter(module.parameters()), None) is None:  # a loss
            return
        learns = self._torch.is_grad_enabled() and module.training
        if learns:
            self._calls.setdefault(id(module), [module, 0])[1] += 1
        tensors = [each for each in inputs_of([*arguments, options]) if isinstance(each, self._torch.Tensor)]
        tensors = [tensor for tensor in tensors if not tensor.requires_grad and tensor.ndim]
        rows = self.trained if learns else self.evaluated
        if all(type(tensor) is self._torch.Tensor and tensor.device.type == "cpu" for tensor in tensors):
            rows.add(
                [tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy() for tensor in tensors]
            )
        elif tensors:  # to copy it here would wait for the device, and move its errors
            rows.count += len(tensors[0])
            self.whole = False

    def _with_keras(self, module: Any) -> None:
        for name, rows in (("fit", self.trained), ("evaluate", self.evaluated)):
            self._patches.around(module.TensorFlowTrainer, name, functools.partial(self._around_data, rows))

    def _around_data(self, rows: Rows, method: Any) -> Any:
        seen, signature = self, inspect.signature(method)

        def observed(*arguments: Any, **options: Any) -> Any:
            if not is_own_run():
                with contextlib.suppress(Exception):
                    given = signature.bind(*arguments, **options).arguments
                    if rows is seen.trained:
                        seen._last = given["self"]
                        seen._note(seen._last, _iterations(seen._last))
                    if all(data is not given.get("x") for data, _ in seen._data):
                        seen._data.append((given.get("x"), rows))
            return method(*arguments, **options)

        return observed


def weights_of(model: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return a model's weights as arrays: by name for PyTorch, by position for Keras."""
    if hasattr(model, "state_dict") and hasattr(model, "named_parameters"):
        found = {}
        for name, tensor in model.state_dict().items():
            if hasattr(tensor, "detach"):
                tensor = tensor.detach().cpu()
                name = name.removeprefix("_orig_mod.").removeprefix("module.")
                found[name] = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
        return found
    return {f"{number:05}": np.asarray(weight) for number, weight in enumerate(model.get_weights())}


def _iterations(model: Any) -> int:
    with contextlib.suppress(Exception):
        return int(model.optimizer.iterations)
    return 0


def _read(data: Any, rows: Rows, until: float) -> None:
    """Read the inputs of what `fit` was given: a tf.data.Dataset, arrays, or a sequence of batches."""
    if data is None:
        return
    if not hasattr(data, "element_spec") and not hasattr(data, "__getitem__") and not isinstance(data, dict):
        raise TypeError("an iterator is used up")
    if not hasattr(data, "element_spec"):
        arrays = [np.asarray(each) for each in inputs_of(data)]
        rows.add(arrays)
        return
    for batch in data:
        inputs = batch[0] if isinstance(batch, tuple | list) else batch
        rows.add([np.asarray(each) for each in inputs_of(inputs)])
        if time.monotonic() > until:
            raise TimeoutError
