"""The private names of Keras and TensorFlow that are read here; those of patched functions are in `taps/keras.py`.

A release may move any of them, and then this is the file to change. Each is imported on first use: Keras may run
without TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {  # a module, or what a module holds
    "DatasetV2": "tensorflow.python.data.ops.dataset_ops:DatasetV2",
    "ExternalStatePolicy": "tensorflow.python.data.ops.options:ExternalStatePolicy",
    "LossFunctionWrapper": "keras.src.losses.losses:LossFunctionWrapper",
    "compute_fans": "keras.src.initializers.random_initializers:compute_fans",
    "context": "tensorflow.python.eager.context",
    "dataset_ops": "tensorflow.python.data.ops.dataset_ops",
    "global_state": "keras.src.backend.common.global_state",
    "op_callbacks": "tensorflow.python.framework.op_callbacks",
    "op_def_registry": "tensorflow.python.framework.op_def_registry",
    "record": "tensorflow.python.eager.record",
    "script_ops": "tensorflow.python.ops.script_ops",
}
# How the names of the modules begin that hold TensorFlow's datasets, and Keras' ImageDataGenerator.
DATASETS, LEGACY_PREPROCESSING = "tensorflow.python.data.ops.", "keras.src.legacy.preprocessing"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, within = _HOMES[name].partition(":")
    home = importlib.import_module(module)
    return getattr(home, within) if within else home
