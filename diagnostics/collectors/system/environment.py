"""The versions and devices of this process, from what it has imported; imports nothing itself."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

# Import name to distribution, of what a training's outcome may depend on.
PACKAGES = {
    "torch": "torch", "torchvision": "torchvision", "torchaudio": "torchaudio", "lightning": "lightning",
    "pytorch_lightning": "pytorch-lightning", "torch_geometric": "torch-geometric", "timm": "timm",
    "skorch": "skorch", "fastai": "fastai", "transformers": "transformers", "tokenizers": "tokenizers",
    "datasets": "datasets", "accelerate": "accelerate", "peft": "peft", "trl": "trl",
    "sentence_transformers": "sentence-transformers", "bitsandbytes": "bitsandbytes", "deepspeed": "deepspeed",
    "keras": "keras", "keras_hub": "keras-hub", "tensorflow": "tensorflow", "jax": "jax", "numpy": "numpy",
    "pandas": "pandas", "sklearn": "scikit-learn",
}  # fmt: skip

VARIABLES = (
    "PYTHONHASHSEED",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_DETERMINISTIC_OPS",
    "KERAS_BACKEND",
)


def environment() -> Iterator[tuple[str, str]]:
    """Yield name and value of what others need to reproduce a run: versions, system, processors, accelerators."""
    yield "Python", platform.python_version()
    yield "system", f"{platform.system()} {platform.release()} ({platform.machine()})"
    yield "processors", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    for module, distribution in PACKAGES.items():
        if module in sys.modules:
            with contextlib.suppress(PackageNotFoundError):
                yield distribution, _version(distribution)
    yield from _accelerators()


@functools.cache  # the file of a package that has been imported is parsed for each report otherwise
def _version(distribution: str) -> str:
    return version(distribution)


def determinism() -> Iterator[tuple[str, str]]:
    """Yield threads, flags and environment variables on which the last digits of a result may depend."""
    for variable in VARIABLES:
        if (value := os.environ.get(variable)) is not None:
            yield variable, value
    with contextlib.suppress(Exception):
        torch = sys.modules["torch"]
        yield "threads of PyTorch", str(torch.get_num_threads())
        yield "deterministic algorithms", str(torch.are_deterministic_algorithms_enabled())
        yield "cudnn.deterministic", str(torch.backends.cudnn.deterministic)
        yield "cudnn.benchmark", str(torch.backends.cudnn.benchmark)
        yield "float32 matmul precision", str(torch.get_float32_matmul_precision())
    with contextlib.suppress(Exception):
        context = sys.modules["tensorflow.python.eager.context"].context()
        yield "threads of TensorFlow within an operation", str(context.intra_op_parallelism_threads or "all")
        yield "threads of TensorFlow between operations", str(context.inter_op_parallelism_threads or "all")
        config = sys.modules["tensorflow.python.framework.config"]
        yield "deterministic operations of TensorFlow", str(config.is_op_determinism_enabled())


def _accelerators() -> Iterator[tuple[str, str]]:
    """Name the devices that the frameworks hold already; a framework that has not looked for any is not asked."""
    with contextlib.suppress(Exception):  # a half-imported framework, or one that the script has changed
        torch = sys.modules["torch"]
        if torch.version.cuda is not None:
            yield "CUDA of PyTorch", torch.version.cuda
        if torch.cuda.is_initialized():
            count = torch.cuda.device_count()
            yield "GPU", f"{count} x {torch.cuda.get_device_name(0)}"
        else:
            yield "GPU", "none used by PyTorch"
    with contextlib.suppress(Exception):
        context = sys.modules["tensorflow.python.eager.context"].context()
        if context._initialized:
            names = [device.name for device in context.list_logical_devices("GPU")]
            yield "GPU of TensorFlow", ", ".join(names) or "none"
