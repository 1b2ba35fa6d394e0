"""What CUDA would say of an operation that failed on the CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

# (the CPU's words, the kernel, its check), from aten/src/ATen/native/cuda: Loss.cu, Indexing.cu,
# ScatterGatherKernel.cu, IndexKernel.cu and MultinomialKernel.cu
_ASSERTIONS: Final = (
    (
        r"Target -?\d+ is out of bounds",
        "Loss.cu",
        "nll_loss_forward_reduce_cuda_kernel_2d",
        "t >= 0 && t < n_classes",
    ),
    (r"index out of range in self", "Indexing.cu", "indexSelectLargeIndex", "srcIndex < srcSelectDimSize"),
    (
        r"all elements of (?:input|target) should be between 0 and 1",
        "Loss.cu",
        "binary_cross_entropy_out_cuda_kernel",
        "target_val >= zero && target_val <= one",
    ),
    (
        r"probability tensor contains either",
        "MultinomialKernel.cu",
        "sampleMultinomialOnce",
        "val >= zero",
    ),
    (
        r"index -?\d+ is out of bounds for dimension \d+ with size \d+ ?$",
        "IndexKernel.cu",
        "index_elementwise_kernel",
        "-sizes[i] <= index && index < sizes[i]",
    ),
    (
        r"(?:index -?\d+ is out of bounds|out of range)",
        "ScatterGatherKernel.cu",
        "vectorized_gather_kernel",
        "idx_dim >= 0 && idx_dim < index_size",
    ),
)
_LAUNCH_FAILURE: Final = ("unspecified launch failure", "cudaErrorLaunchFailure", 719)
_ASSERT: Final = ("device-side assert triggered", "cudaErrorAssert", 710)


@dataclass(frozen=True)
class Failure:
    """An operation that failed and took the device with it."""

    said: str  # what a GPU prints to standard error, in lines
    error: str  # CUDA's name for it: "device-side assert triggered"
    symbol: str
    code: int  # cudaError_t

    def exception(self) -> Exception:
        """Make what PyTorch raises at the call that notices, and at every call thereafter."""
        import torch

        raised: Exception = torch.AcceleratorError(
            f"CUDA error: {self.error} (simulated device)\n"
            f"Search for `{self.symbol}' in https://docs.nvidia.com/cuda/cuda-runtime-api/"
            "group__CUDART__TYPES.html for more information.\n"
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
            "might be incorrect.\n"
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
            "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
        )
        raised.error_code = self.code  # type: ignore[attr-defined]
        return raised


def failure_of(operation: str, error: BaseException, arguments: Sequence[Any]) -> Failure:
    """Translate what the CPU said into what a GPU would have said.

    Args:
        operation: such as "nll_loss_forward".
        error: what the CPU's kernel raised.
        arguments: the operation's own arguments, on the CPU, to find the threads that failed.
    """
    words = str(error)
    for pattern, file, kernel, check in _ASSERTIONS:
        if re.search(pattern, words):
            lines = [
                f"simulated/{file}:0: {kernel}: block: [0,0,0], thread: [{thread},0,0] Assertion `{check}` failed."
                for thread in _threads(operation, arguments)
            ]
            return Failure("\n".join(lines), *_ASSERT)
    said = f"simulated device: {operation} failed: {type(error).__name__}: {words}"
    return Failure(said, *_LAUNCH_FAILURE)


def _threads(operation: str, arguments: Sequence[Any]) -> list[int]:
    """Say which threads fail; for the loss, those whose row has the bad label (a block has 32 that take turns)."""
    if operation == "nll_loss_forward" and len(arguments) == 5 and arguments[0].ndim == 2:
        scores, labels, ignored = arguments[0], arguments[1], arguments[4]
        beyond = (labels != ignored) & ((labels < 0) | (labels >= scores.shape[1]))
        return sorted({row % 32 for row in beyond.nonzero().flatten().tolist()})
    return [0]
