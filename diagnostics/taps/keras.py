"""The functions of Keras, and of TensorFlow beside it, whose calls by a script are observed.

This imports neither: a script may use Keras without TensorFlow, and Keras may be half imported when the first
subscriber comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from diagnostics.collectors.isolation.internal import is_own_run

from .tap import OutermostTap, Tap, TrainTap

_TRAINER = "keras.src.backend.tensorflow.trainer:TensorFlowTrainer"
_OPTIMIZER = "keras.src.optimizers.base_optimizer:BaseOptimizer"
_LAYER = "keras.src.layers.layer:Layer"
_TAPE = "tensorflow.python.eager.backprop:GradientTape"
_FUNCTION = "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function"
_REGULARIZERS = ("L1", "L2", "L1L2", "OrthogonalRegularizer")


class _Apply(Tap):
    """`BaseOptimizer.apply`; an optimizer may call another's, which is no event.

    The events have the optimizer, a list of the gradients, and one of the variables or None.
    """

    def _make(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        tap, turn, within = self, self._turn, threading.local()

        def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
            if getattr(within, "call", False) or is_own_run() or tap._turn is not turn:
                return plain(optimizer, grads, trainable_variables)
            grads = list(grads)
            variables = None if trainable_variables is None else list(trainable_variables)
            within.call = True
            try:
                tap.before.tell(optimizer, grads, variables)
                result = plain(optimizer, grads, variables)
                tap.after.tell(result, optimizer, grads, variables)
                return result
            finally:
                within.call = False

        return apply


class _ModelCalls(Tap):
    """`Model.__call__`, which `Model` inherits, and of which the base class may be tapped later."""

    def _make(self, _inherited: Callable[..., Any]) -> Callable[..., Any]:
        tap, turn = self, self._turn
        kind: Any = self.owners()[0]

        def call(model: Any, *arguments: Any, **options: Any) -> Any:
            outputs = super(kind, model).__call__(*arguments, **options)  # type: ignore[misc]
            if tap._turn is turn:
                tap.after.tell(outputs, model, *arguments, **options)
            return outputs

        return call


_VECTORIZER = "keras.src.layers.preprocessing.text_vectorization:TextVectorization"
vectorizer_adapt, vectorizer_call = Tap("adapt", _VECTORIZER), Tap("call", _VECTORIZER)
add_loss = Tap("add_loss", _LAYER)
own_losses = Tap("_get_own_losses", _LAYER)
regularization_losses = Tap("_get_regularization_losses", _LAYER)
regularizer_call = Tap("__call__", *(f"keras.src.regularizers.regularizers:{name}" for name in _REGULARIZERS))
layer_call = OutermostTap("__call__", _LAYER)
maybe_build = OutermostTap("_maybe_build", _LAYER)
loss_call = Tap("__call__", "keras.src.losses.loss:Loss")
model_call = _ModelCalls("__call__", "keras.src.models.model:Model")
mean_result = Tap("result", "keras.src.metrics.reduction_metrics:Mean")
metric_reset = Tap("reset_state", "keras.src.metrics.metric:Metric", "keras.src.metrics.reduction_metrics:Mean")
variable_assign = Tap("assign", "keras.src.backend.common.variables:Variable")

optimizer_init = Tap("__init__", _OPTIMIZER)
optimizer_apply = _Apply("apply", _OPTIMIZER)
tape_enter = Tap("__enter__", _TAPE)
tape_gradient = Tap("gradient", _TAPE)
function_call = OutermostTap("__call__", _FUNCTION)
graph_trace = OutermostTap("func_graph_from_py_func", "tensorflow.python.framework.func_graph")
dataset_function = Tap("__init__", "tensorflow.python.data.ops.structured_function:StructuredFunctionWrapper")
dataset_iter = Tap("__iter__", "tensorflow.python.data.ops.dataset_ops:DatasetV2")

fit = TrainTap("fit", _TRAINER)
fit_on_torch = TrainTap("fit", "keras.src.backend.torch.trainer:TorchTrainer")
fit_on_jax = TrainTap("fit", "keras.src.backend.jax.trainer:JAXTrainer")
evaluate = Tap("evaluate", _TRAINER)
predict = Tap("predict", _TRAINER)
predict_on_batch = Tap("predict_on_batch", _TRAINER)
test_on_batch = Tap("test_on_batch", _TRAINER)
test_step = Tap("test_step", _TRAINER)
train_on_batch = Tap("train_on_batch", _TRAINER)
train_batch_end = Tap("on_train_batch_end", "keras.src.callbacks.callback_list:CallbackList")
