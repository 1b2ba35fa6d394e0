"""Says what a traceback shows whose last line was not copied: the call that failed, and what usually fails there.

The line that is missing names the exception and the reason. The frames alone prove which call it was; at
most three causes are usual at a call, and each is named with what its message would say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from diagnostics.facts.crash import CrashFacts, FrameFacts

NO_EXCEPTION = "the text ends before the line with the exception"
NO_MESSAGE = "the text ends before its message"
MOST_READ = 400  # characters of a frame


@dataclass(frozen=True)
class _Call:
    """A call that fails for few reasons.

    Attributes:
        frame: pattern for a frame, as ``torch/serialization.py:load: with open(f)``.
        does: what happens there.
        causes: the usual ones, the most frequent first, with the words of their messages.
    """

    frame: re.Pattern[str]
    does: str
    causes: tuple[str, ...]

    def shows(self, frame: FrameFacts) -> bool:
        """Whether a frame is of this call."""
        file = frame.file.replace("\\", "/")
        written = f"{file}:{frame.function}: {(frame.code or '').strip()}"
        return self.frame.search(written[:MOST_READ]) is not None


_CALLS = tuple(
    _Call(re.compile(frame), does, causes)
    for frame, does, causes in (
        (
            r"torch/distributed/(?:rendezvous|elastic/rendezvous/\w+)\.py|TCPStore\(",
            "the processes of a run meet at an address and port",
            (
                "'Address already in use': another run, or one that hangs, holds the port; give this one another "
                "(torchrun --master-port 29501, or the number in init_method='tcp://localhost:...')",
                "'timed out' or 'connection refused': fewer processes than world_size were started, or "
                "MASTER_ADDR "
                "cannot be reached",
            ),
        ),
        (
            r"torch/distributed/(?:distributed_c10d|utils|_functional_collectives)\.py"
            r"|torch/nn/parallel/distributed\.py:(?:__init__|_sync\w*|_verify\w*)",
            "the processes of a run exchange tensors",
            (
                "an error of NCCL: two processes use one GPU (torch.cuda.set_device(local_rank) is missing), or "
                "the GPUs cannot reach each other; NCCL_DEBUG=INFO names it",
                "another rank failed first, and this one waited for it: look for the other ranks' tracebacks",
            ),
        ),
        (
            r"torch/distributed/(?:run|launch|launcher/api)\.py|subprocess\.py:(?:run|check_call|check_output)",
            "a launcher or program reports that a process that it started has failed",
            ("the reason stands above, in the output of that process",),
        ),
        (
            r"torch/utils/cpp_extension\.py",
            "PyTorch compiles an extension",
            (
                "the compiler's first line with 'error:', further up, names it: a header or nvcc that is "
                "missing, a "
                "CUDA toolkit of another version than PyTorch's, or a compiler that nvcc does not support",
            ),
        ),
        (
            r"\brun_backward\(|\.backward\(|torch/autograd/(?:__init__|graph)\.py",
            "the gradients are computed",
            (
                "'does not require grad': all parameters are frozen, or the loss was made outside the graph",
                "'modified by an inplace operation' or 'backward through the graph a second time'",
                "'out of memory', or an error of CUDA that an earlier kernel raised: CUDA_LAUNCH_BLOCKING=1 moves "
                "it to its own line",
            ),
        ),
        (
            r"\b_?binary_cross_entropy(?:_with_logits)?\b",
            "binary cross-entropy is computed",
            (
                "'target size must be the same as input size': unsqueeze or squeeze one of the two",
                "'expected scalar type' or 'Found dtype Long': target.float()",
                "values outside of 0..1: a sigmoid is missing before BCELoss",
            ),
        ),
        (
            r"\b(?:cross_entropy|nll_loss)\w*\(|:(?:cross_entropy|nll_loss)\b",
            "cross-entropy is computed",
            (
                "'Target ... is out of bounds', or a device-side assert on a GPU: a label is below 0, or not "
                "below "
                "the number of outputs",
                "'expected scalar type Long': labels.long()",
                "shapes: (N, C) for the outputs, and (N) for labels that are indices",
            ),
        ),
        (
            r"\bembedding\(|:embedding\b",
            "ids are looked up in an embedding",
            (
                "'index out of range in self', or a device-side assert on a GPU: an id is not below "
                "num_embeddings; "
                "after new tokens: model.resize_token_embeddings(len(tokenizer))",
                "'Expected all tensors to be on the same device': move the batch to the model's device",
                "'Expected tensor for argument #1 'indices' to have one of the following scalar types': "
                "ids.long()",
            ),
        ),
        (
            r"\bF\.(?:linear|conv\w*|batch_norm|layer_norm|group_norm)\(|:_conv_forward\b|nn/functional\.py:"
            r"(?:linear|conv\w*|batch_norm|layer_norm)\b",
            "a layer is applied to its input",
            (
                "shapes: 'mat1 and mat2 shapes cannot be multiplied', 'expected input ... to have ... channels': "
                "print x.shape before the layer",
                "dtypes: 'expected scalar type', 'should be the same': x.float() for float64 from NumPy, or "
                "autocast for a model in half precision",
                "devices, or the GPU's memory: 'on the same device', 'out of memory'",
            ),
        ),
        (
            r":load_state_dict\b|\.load_state_dict\(",
            "weights are loaded into a model",
            (
                "'Missing key(s)' and 'Unexpected key(s)': a prefix such as module. or model., or another "
                "architecture",
                "'size mismatch': another number of classes, or another vocabulary",
            ),
        ),
        (
            r"torch/serialization\.py|\btorch\.load\(",
            "a file of weights is read",
            (
                "'Weights only load failed': PyTorch 2.6 reads no other classes; weights_only=False, if you trust "
                "the file",
                "'PytorchStreamReader' or 'invalid load key': the file is incomplete, or a page or pointer in its "
                "place; look at its size",
                "'Attempting to deserialize object on a CUDA device': map_location='cpu'",
            ),
        ),
        (
            r"torch/utils/data/_utils/collate\.py|\btorch\.stack\(",
            "examples are joined into a batch",
            (
                "'stack expects each tensor to be equal size': resize, crop or pad the examples",
                "'default_collate: batch must contain tensors ...': an example holds None, an image of PIL's or "
                "an "
                "object",
            ),
        ),
        (
            r"torch/_utils\.py:reraise|torch/utils/data/dataloader\.py|torch/utils/data/_utils/(?:fetch|worker)\.py"
            r"|: for .{1,60} in .{0,20}\b\w*loader\b",
            "the loader fetches the next batch",
            (
                "an error of the dataset's own __getitem__ or transform: its traceback follows these lines, and "
                "num_workers=0 shows its line",
                "'exited unexpectedly' or 'killed by signal': the memory, or the shared memory of a container, is "
                "full",
            ),
        ),
        (
            r"transformers/tokenization_utils_base\.py:(?:convert_to_tensors|as_tensor)|transformers/data/data_collator",
            "a batch of tokens is padded and becomes tensors",
            (
                "lists of different length: padding=True, or a collator that pads the labels, too",
                "\"too many dimensions 'str'\": a column of text is left in the dataset",
            ),
        ),
        (
            r"transformers/tokenization_utils\w*\.py",
            "texts are tokenized",
            ("what is passed is no str: None or NaN in the column, or a column of a dataset in place of a list",),
        ),
        (
            r"datasets/arrow_(?:dataset|writer)\.py",
            "a function is mapped over a dataset, and its rows are written",
            (
                "the function itself failed: its line stands between these",
                "'expected length ... but got length': with batched=True all columns need the same length; "
                "remove_columns=dataset.column_names",
                "'Could not convert' or 'cannot mix': a column changes its type from row to row",
            ),
        ),
        (
            r"huggingface_hub/|transformers/utils/hub\.py|requests/|urllib3?/",
            "a file is fetched from a server",
            (
                "the name is wrong, or the repository asks for a token: 404, 401, 403",
                "there is no connection: HF_HUB_OFFLINE=1 with files that are there already",
            ),
        ),
        (
            r"torch/cuda/__init__\.py:_lazy_init",
            "PyTorch starts CUDA",
            (
                "'not compiled with CUDA enabled': a build for the CPU is installed",
                "'Found no NVIDIA driver', 'driver ... too old' or 'No CUDA GPUs are available': nvidia-smi, and "
                "CUDA_VISIBLE_DEVICES",
                "'Cannot re-initialize CUDA in forked subprocess': spawn, or no CUDA in the dataset",
            ),
        ),
        (
            r"torch/nn/modules/module\.py:(?:_apply|convert|to|cuda|<lambda>)\b|\.(?:to|cuda)\([^()]*\)$",
            "tensors are moved to a device",
            (
                "'out of memory': nvidia-smi shows who holds it",
                "'invalid device ordinal': fewer GPUs are visible than the code counts on",
                "an error of CUDA that an earlier kernel raised: CUDA_LAUNCH_BLOCKING=1 moves it to its own line",
            ),
        ),
        (
            r"torch/optim/\w+\.py",
            "the optimizer changes the weights",
            (
                "'out of memory': Adam makes its two moments in the first step",
                "'on the same device': the model was moved after its optimizer was made, or a state was loaded "
                "without map_location",
            ),
        ),
        (
            r"tensorflow/python/eager/execute\.py|tensorflow/python/framework/(?:ops|errors_impl)\.py"
            r"|tensorflow/python/client/session\.py",
            "TensorFlow runs an operation",
            (
                "'Received a label value of' or 'indices[...] = ... is not in': a label or token is beyond the "
                "layer's size",
                "'Incompatible shapes' or 'logits and labels must be broadcastable'",
                "'OOM when allocating' or a library of CUDA that was not found: smaller batches, or the versions "
                "that TensorFlow names",
            ),
        ),
        (
            r": (?:from [\w.]+ import |import \w)",
            "a module is imported",
            (
                '"No module named": it is not installed for the Python that runs',
                "'cannot import name': the installed release does not have it (any more)",
                "'undefined symbol', 'DLL load failed' or 'numpy.dtype size changed': compiled for another "
                "release",
            ),
        ),
    )
)


def is_unfinished(crash: CrashFacts) -> bool:
    """Whether a traceback was read whose message is missing."""
    return crash.message in (NO_EXCEPTION, NO_MESSAGE)


def shown_by(crash: CrashFacts) -> str:
    """Say which call the last frames show, what usually fails there, and that the reason itself is missing."""
    name = crash.exception.rpartition(".")[2]
    missing = f"The message of the {name} is missing" if name else "The line with the exception is missing"
    last = crash.frames[-1] if crash.frames else None
    if last is None:
        return f"{missing}: it says why. Copy the text to its end."
    known = ((frame, call) for frame in reversed(crash.frames) for call in _CALLS if call.shows(frame))
    frame, call = next(known, (last, None))
    ends = "" if frame is last else f" The text ends in {last.function} ({last.file}:{last.line})."
    if call is None:
        return (
            f"{missing}: it says why. The last frame shown is {last.function} ({last.file}:{last.line}), which "
            "alone tells no cause. Copy the text to its end."
        )
    several = len(call.causes) > 1
    usual = "; ".join(f"({number}) {cause}" if several else cause for number, cause in enumerate(call.causes, 1))
    return (
        f"{missing}, so that the cause is not certain. In {frame.function} ({frame.file}:{frame.line}) "
        f"{call.does}."
        f"{ends} Usual there: {usual}. The line that is missing tells: copy the text to its end."
    )
