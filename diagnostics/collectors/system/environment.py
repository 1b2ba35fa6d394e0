"""The versions and devices of this process, from what it has imported; imports nothing itself."""

from __future__ import annotations

import contextlib
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


def environment() -> Iterator[tuple[str, str]]:
    """Yield name and value of what others need to reproduce a run: versions, system, processors, accelerators."""
    yield "Python", platform.python_version()
    yield "system", f"{platform.system()} {platform.release()} ({platform.machine()})"
    yield "processors", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    for module, distribution in PACKAGES.items():
        if module in sys.modules:
            with contextlib.suppress(PackageNotFoundError):
                yield distribution, version(distribution)
    yield from _accelerators()


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
