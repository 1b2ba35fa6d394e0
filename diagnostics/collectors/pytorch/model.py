"""Describes a module, and reads the units of a weight."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from diagnostics.collectors.shared.arrays import outputs_setting
from diagnostics.collectors.shared.equal_units import MAX_NUMBERS, Read, units_alike
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import EndToken
from diagnostics.facts.pipeline import ModelFacts

from .local_tensors import PLAIN

_MODE_DEPENDENT = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # smaller ones have no largest number


def is_lazy(parameter: Any) -> bool:
    """Whether a parameter waits for the first batch to get its shape."""
    return isinstance(parameter, nn.parameter.UninitializedParameter)


def uncompiled(model: nn.Module) -> nn.Module:
    """Return the module that `torch.compile` wraps; any other as it is, whatever its ``__getattr__`` answers."""
    compiled: Any = sys.modules.get("torch._dynamo.eval_frame")
    if compiled is None or not isinstance(model, compiled.OptimizedModule):
        return model
    inner = vars(model)["_modules"].get("_orig_mod")
    return inner if isinstance(inner, nn.Module) else model


def configuration(model: nn.Module) -> Any:
    """Return the configuration of a transformers model; None for any other, whatever it calls its ``config``."""
    library: Any = sys.modules.get("transformers.configuration_utils")
    try:
        found = getattr(model, "config", None) if library is not None else None
    except Exception:  # of the user's own
        return None
    return found if library is not None and isinstance(found, library.PretrainedConfig) else None


def end_token(model: nn.Module) -> EndToken | None:
    """Return the token that ends a text by a model's configuration; None if it names none."""
    config = configuration(uncompiled(model))
    named = getattr(config, "eos_token_id", None)
    tokens = tuple(one for one in (named if isinstance(named, list) else [named]) if isinstance(one, int))
    if not tokens:
        return None
    return EndToken(tokens, of_targets=config.is_encoder_decoder is True and _generates(uncompiled(model)))


def _generates(model: nn.Module) -> bool:
    """Return whether a model of transformers writes texts: one with an encoder may also classify its input."""
    inner = getattr(model, "get_base_model", lambda: model)()  # of PEFT
    return any(kind.__name__ == "GenerationMixin" for kind in type(inner).__mro__)


def fills_in_tokens(model: nn.Module) -> bool:
    """Whether a model of transformers is to tell the tokens that are masked in its input."""
    kind = type(uncompiled(model))
    return kind.__module__.startswith("transformers.") and kind.__name__.endswith("ForMaskedLM")


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the first parameter or buffer; the CPU for a model without any."""
    for tensor in (*model.parameters(), *model.buffers()):
        return torch.device("cpu") if tensor.is_meta else tensor.device
    return torch.device("cpu")


def check_runnable(model: nn.Module) -> None:
    """Refuse a model that has no weights yet.

    Raises:
        StageFailed: says why, and what to do.
    """
    parameters = list(model.parameters())
    if not parameters:
        raise StageFailed(
            f"{type(model).__name__} has no parameters: there is nothing that training could change."
        )
    if meta := sum(parameter.is_meta for parameter in parameters):
        raise StageFailed(
            f"{meta} of the model's {len(parameters)} parameters are on the device meta: they have a shape and no "
            "values. Load or initialise the weights first."
        )
    if lazy := sum(map(is_lazy, parameters)):
        raise StageFailed(
            f"{lazy} of the model's {len(parameters)} parameters get their shape from the first batch (lazy "
            "modules) and have seen none. Run one batch through the model first; make the optimizer after that."
        )


def several_ranks() -> int:
    """Return the number of processes that train together; 0 for one alone."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 0
    size = torch.distributed.get_world_size()
    return size if size > 1 else 0


def accepts(model: nn.Module, count: int) -> bool:
    """Whether the model's forward can be called with so many positional arguments."""
    try:
        inspect.signature(model.forward).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def size_of(parameter: nn.Parameter) -> int:
    """Return the number of scalars in a parameter; 0 for a lazy one, which has no shape yet."""
    return 0 if is_lazy(parameter) else parameter.numel()


def parameter_names(model: nn.Module) -> tuple[str, ...]:
    """List the names that the model's forward accepts; empty if it takes any keyword or cannot be told."""
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return ()
    if any(p.kind is p.VAR_KEYWORD for p in parameters) and len(parameters) == 1:
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


def named_arguments(model: nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Name the arguments that a model of transformers got by their place, ``"0"``, as its forward names them."""
    names = parameter_names(model) if configuration(model) is not None else ()
    known = {str(place): name for place, name in enumerate(names) if name not in inputs}
    return {known.get(name, name): value for name, value in inputs.items()}


def _input_embedding(model: nn.Module) -> Any:
    try:
        return model.get_input_embeddings()
    except Exception:  # no transformers model, or one without tokens, which raises in its own way
        return None


def has_modes(module: nn.Module) -> bool:
    """Whether a layer behaves differently in training: dropout that drops something, batch norm."""
    return isinstance(module, _MODE_DEPENDENT) and getattr(module, "p", 1) != 0


def describe_model(model: nn.Module, *, training: bool | None, computes_loss: bool) -> ModelFacts:
    """Turn a module into facts. The loop decides `training` (None) and who computes the loss."""
    config = configuration(model)
    embedding = _input_embedding(model)
    pad = getattr(config, "pad_token_id", None)
    parameters = list(model.parameters())
    embeddings = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    masking = [(one.padding_idx, one.num_embeddings) for one in embeddings if one.padding_idx is not None]
    return ModelFacts(
        name=type(model).__name__,
        library="torch" if config is None else "transformers",
        num_parameters=sum(size_of(p) for p in parameters),
        num_trainable=sum(size_of(p) for p in parameters if p.requires_grad),
        input_names=parameter_names(model),
        embedding_rows=embedding.num_embeddings if isinstance(embedding, nn.Embedding) else None,
        pad_token_id=pad if isinstance(pad, int) else None,
        training=training,
        computes_loss=computes_loss,
        mode_dependent_layers=tuple(name for name, module in model.named_modules() if has_modes(module)),
        outputs_setting=outputs_setting(model),
        adapters=hasattr(model, "peft_config"),
        frozen_output=_output_is_frozen(model),
        is_own=not type(model).__module__.startswith("transformers."),
        from_checkpoint=bool(getattr(config, "_name_or_path", "")),
        lightning=_is_of_lightning(model),
        masked=masking[0] if len(masking) == 1 else None,
    )


def _is_of_lightning(model: nn.Module) -> bool:
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    return bool(packages & {"lightning", "pytorch_lightning"})


def _output_is_frozen(model: nn.Module) -> bool | None:
    """Say whether the last layer with weights is frozen; with PEFT, whether no new head is trained beside it."""
    if hasattr(model, "peft_config"):
        return not any("modules_to_save" in name for name, p in model.named_parameters() if p.requires_grad)
    last = [p for p in model.parameters() if not is_lazy(p) and p.ndim > 1][-1:]
    return None if not last else not last[0].requires_grad


def units_of(weight: Tensor) -> Read | None:
    """Return what reads the units of a weight (units, ...); None if it has none."""
    if (
        type(weight) not in PLAIN
        or weight.dtype not in DTYPES
        or weight.layout is not torch.strided
        or weight.is_meta
    ):
        return None
    if weight.ndim < 2 or weight.shape[0] < 2 or not 0 < weight.numel() <= MAX_NUMBERS:
        return None

    def read(count: int | None) -> Array:
        return np.asarray(weight.detach()[:count].float().cpu().numpy())

    return read


def rows_alike(weight: Tensor) -> bool:
    """Whether all units of a weight (units, ...) are copies of each other, zeros included."""
    return units_alike(units_of(weight))


def positions_given(layer: nn.Module, arguments: Any, options: Any) -> int:
    """Return the number of positions that a recurrent layer is given; 0 if not known."""
    given = arguments[0] if arguments else options.get("input")
    if isinstance(given, PackedSequence):
        return len(given.batch_sizes)
    if not isinstance(given, Tensor) or given.ndim < 2:
        return 0
    return int(given.shape[1 if layer.batch_first and given.ndim == 3 else 0])
