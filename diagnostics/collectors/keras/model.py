"""Describes a compiled Keras model, its layers and its optimizer."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from diagnostics.collectors.shared.arrays import MOSTLY, NEAR_BOUND
from diagnostics.collectors.shared.pipeline import CannotJudge, users_code
from diagnostics.facts.layers import ActivationFacts
from diagnostics.facts.pipeline import GradientFacts, ModelFacts

# Functions with a lower and an upper bound, at which their gradient vanishes.
_BOUNDS = {"tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0), "hard_sigmoid": (0.0, 1.0), "hard_tanh": (-1.0, 1.0)}
_RELU_LIKE = ("relu", "relu6")
# Stages that no pipeline of Keras offers; see `Pipeline.not_offered`.
NOT_OFFERED = {
    "evaluation": "Keras' metrics are not tested",
    "reproduction": "reproducibility is not checked for Keras models",
}


def describe_model(model: keras.Model) -> ModelFacts:
    """Turn a model into facts."""
    layers = list(model._flatten_layers())
    embeddings = [layer for layer in layers if isinstance(layer, keras.layers.Embedding)]
    tokens = [layer for layer in embeddings if "position" not in type(layer).__name__.lower()]
    masking = [(0, layer.input_dim) for layer in tokens if layer.mask_zero]
    count = sum(int(np.prod(variable.shape)) for variable in model.weights)
    trainable = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    return ModelFacts(
        name=type(model).__name__,
        library="keras",
        num_parameters=count,
        num_trainable=trainable,
        input_names=tuple(getattr(model, "input_names", None) or ()),
        embedding_rows=tokens[0].input_dim if len(tokens) == 1 else None,
        mode_dependent_layers=tuple(
            layer.name
            for layer in layers
            if isinstance(layer, keras.layers.Dropout | keras.layers.BatchNormalization)
        ),
        outputs_setting=_outputs_setting(model),
        computes_loss=computes_loss(model),
        scales_inputs=any(
            isinstance(layer, keras.layers.Normalization | keras.layers.Rescaling) for layer in layers
        ),
        masked=masking[0] if len(masking) == 1 else None,
    )


def has_weights(model: keras.Model) -> bool:
    """Whether the weights are there; many models make them when they are first called."""
    return bool(model.built and model.variables and all(layer.built for layer in model._flatten_layers()))


def has_call(model: keras.Model) -> bool:
    """Whether the model can be called; one whose train_step calls its parts needs no `call`."""
    return type(model).call is not keras.Model.call


def has_parts_weights(model: keras.Model) -> bool:
    """Whether the weights are there, also of a model that was never called: its train_step calls its parts."""
    if has_weights(model):
        return True
    if not has_own_train_step(model) or type(model).build is not keras.Model.build or not model.variables:
        return False
    return all(part.built for part in model._flatten_layers(include_self=False))


def how_to_build(model: keras.Model) -> str:
    """Say what makes the weights of a model."""
    return "call it once on a batch, model(x)" if has_call(model) else "call each of its parts once on a batch"


def fixed_batch_size(model: keras.Model) -> int | None:
    """Return the only batch size that a model takes, as one with a stateful layer does; None if any will do."""
    sizes = {given.shape[0] for given in getattr(model, "inputs", None) or ()}
    return next(iter(sizes)) if len(sizes) == 1 else None


def has_own_train_step(model: keras.Model) -> bool:
    """Whether `fit` steps through code of the user's own, not Keras'."""
    return type(model).train_step is not keras.Model.train_step


def with_weights(model: keras.Model, x: Any) -> keras.Model:
    """Build a model again from its configuration, compile it likewise, and let it make its weights for `x`.

    Raises:
        CannotJudge: it has no configuration.
        UsersCodeRaised: it cannot take `x`.
    """
    try:
        twin = type(model).from_config(model.get_config())
        twin.compile(
            optimizer=model.optimizer,
            loss=model.loss,
            loss_weights=getattr(model._compile_loss, "_user_loss_weights", None),
            run_eagerly=model.run_eagerly,
            jit_compile=model.jit_compile,
        )
    except Exception as error:  # a subclass whose arguments cannot be written down
        raise CannotJudge(
            "the model has no weights yet, making them would change it, and it cannot be built a second time "
            f"({type(error).__name__}): {how_to_build(model)}, before it is examined"
        ) from None
    with users_code():
        twin(x, training=False) if twin._call_has_training_arg else twin(x)
    return twin


def computes_loss(model: keras.Model) -> bool | None:
    """Whether the loss is all the model's own: it is compiled with none. None where the model may add to it."""
    if has_own_train_step(model) or (has_own_loss(model) and model.loss is not None):
        return None
    return model.loss is None


def has_own_loss(model: keras.Model) -> bool:
    """Whether the model's class has a `compute_loss` of its own."""
    return type(model).compute_loss is not keras.Model.compute_loss


def last_activation(model: keras.Model) -> str | None:
    """Name the function that makes the prediction, where the graph of layers is known."""
    layer = last_layer(model)
    return None if layer is None else activation_of(layer)


def last_layer(model: keras.Model) -> Any:
    """Return the layer that makes the only prediction; None where the graph of layers is not known.

    Layers that only change the shape, or nothing, are passed over.
    """
    outputs = getattr(model, "outputs", None)
    if not outputs or len(outputs) != 1:
        return None
    layer, index, _ = outputs[0]._keras_history
    while passes_on(layer):
        parents = layer._inbound_nodes[index].parent_nodes
        if len(parents) != 1:
            break
        layer, index = parents[0].operation, parents[0].operation._inbound_nodes.index(parents[0])
    return layer


def activation_before(model: keras.Model) -> str | None:
    """Name the function that makes what a last layer without weights is applied to, likewise."""
    layer = last_layer(model)
    if not isinstance(layer, keras.layers.Softmax | keras.layers.Activation) or len(layer._inbound_nodes) != 1:
        return None
    parents = layer._inbound_nodes[0].parent_nodes
    return activation_of(parents[0].operation) if len(parents) == 1 else None


def activation_of(layer: Any) -> str | None:
    """Name the function that a layer ends in; None where it is not known."""
    if isinstance(layer, keras.layers.Softmax):
        return "softmax"
    if isinstance(layer, keras.layers.ReLU):
        return "relu" if layer.max_value is None and not layer.negative_slope else None
    return getattr(getattr(layer, "activation", None), "__name__", None)


def passes_on(layer: Any) -> bool:
    """Whether a layer only changes the shape, or nothing."""
    if isinstance(layer, keras.layers.Activation):
        return getattr(layer.activation, "__name__", None) == "linear"
    return isinstance(layer, keras.layers.Reshape | keras.layers.Flatten)


def layer_activations(model: keras.Model, x: Any) -> tuple[ActivationFacts, ...]:
    """Run the model in inference mode and look at its activation functions; empty if its graph is not known."""
    if (
        not isinstance(model, keras.Sequential)
        and not getattr(model, "_functional", None)
        and not hasattr(model, "_operations_by_depth")
    ):
        return ()
    calls = _calls(model)
    wanted = []
    for layer in model.layers:
        function = _function_of(layer)
        if function is not None and len(calls.get(id(layer), ())) == 1:
            wanted.append((layer, function))
    if not wanted:
        return ()
    look = keras.Model(model.inputs, [calls[id(layer)][0] for layer, _ in wanted])
    outputs = keras.tree.flatten(look(x, training=False))
    return tuple(
        _facts(layer.name, function, np.asarray(keras.ops.cast(output, "float32")))
        for (layer, function), output in zip(wanted, outputs, strict=True)
    )


def _calls(model: keras.Model) -> dict[int, list[Any]]:
    """Return, by the layer's id, its outputs in this model's own graph, one a call.

    A layer keeps the nodes of every graph that it was ever part of, and a Sequential model makes a new graph each
    time a layer is added.
    """
    graph = getattr(model, "_functional", None) or model
    calls: dict[int, list[Any]] = {}
    for depth in getattr(graph, "_nodes_by_depth", {}).values():
        for node in depth:
            outputs = keras.tree.flatten(node.output_tensors)
            if len(outputs) == 1:
                calls.setdefault(id(node.operation), []).append(outputs[0])
    return calls


def _outputs_setting(model: keras.Model) -> str:
    if hasattr(model, "num_classes"):  # KerasHub's tasks
        return f"{type(model).__name__}.from_preset(..., num_classes={{}})"
    return "keras.layers.Dense({}) as the last layer"


def _function_of(layer: Any) -> str | None:
    name = getattr(getattr(layer, "activation", None), "__name__", None)
    if isinstance(layer, keras.layers.ReLU):
        name = "relu"
    return name if name in _BOUNDS or name in _RELU_LIKE else None


def _facts(name: str, function: str, output: np.ndarray) -> ActivationFacts:
    units = output.reshape(-1, output.shape[-1])
    dead = saturated = 0
    if function in _RELU_LIKE:
        dead = int((units == 0).all(0).sum())
    else:
        low, high = _BOUNDS[function]
        margin = NEAR_BOUND * (high - low)
        at_bound = (units <= low + margin) | (units >= high - margin)
        saturated = int((at_bound.mean(0) >= MOSTLY).sum())
    return ActivationFacts(name, function, int(units.shape[1]), dead, saturated)


def gradient_facts(model: keras.Model, norms: dict[str, float]) -> GradientFacts:
    """Return the facts of one backward pass.

    Args:
        model: built.
        norms: of the gradients, by the path of their variable; those that are missing have none.
    """
    sizes = [(variable.path, int(np.prod(variable.shape))) for variable in model.trainable_variables]
    unreached = {path: size for path, size in sizes if path not in norms}
    return GradientFacts(bool(norms), norms, unreached, sum(size for _, size in sizes))
