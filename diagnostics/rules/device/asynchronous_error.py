"""See `AsynchronousError`."""

from __future__ import annotations

import re

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import AsynchronousErrorCrash, CrashFacts, FrameFacts
from diagnostics.facts.where import Where

MOST_LISTED = 6  # the last candidates; the evidence holds them all

_MEANING = {
    "assert": (
        "an assertion in a kernel failed, nearly always because an index is out of range: a label beyond the "
        "model's last output, or a token id beyond the embedding's last row"
    ),
    "memory access": "a kernel read or wrote memory outside its tensors, usually because of an unchecked index",
    "launch": "a kernel was stopped before it finished, and no reason was reported",
}
_LOST = " This process can no longer use the device: every later call fails until you restart the process."
_CPU = (
    'run one batch on the CPU (device = "cpu", or diagnose run --replay-on-cpu); the error is then raised at the '
    "failing line and names the index"
)
_RANGES = (
    "check the ranges on the CPU: labels.min() and labels.max() must be between 0 and the number of outputs - "
    "1, and input_ids.max() must be less than the number of embedding rows"
)
_EXECUTION = re.compile(r"CU(?:DNN|BLAS)_STATUS_EXECUTION_FAILED")
_NEWER = (
    'run python -c "import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())"; if the '
    "GPU's compute capability is not in the list, install a PyTorch build for a newer CUDA version"
)


class AsynchronousError(MessageRule):
    """The traceback names the synchronisation point, not the call that failed.

    ## What it does
    Recognises the errors that a device reports asynchronously (device-side asserts, illegal memory accesses,
    launch failures), and errors from cuBLAS, cuDNN and NCCL, whose cause is usually elsewhere. Lists the lines of
    the training step that may have launched the failed work. If the actual cause can be found, such as a label out
    of range, the rule for that cause fires too.

    ## Why it is bad
    A GPU operation is queued, and the call returns before the operation has run. The error is raised only at the
    next synchronisation: at `loss.item()`, at a copy to the CPU, or in `backward()`. The traceback names the line
    of the synchronisation, which is the wrong place to look. After a failed kernel, the process can no longer use
    the device.

    ## Example
    ```python
    logits = model(inputs)              # two outputs
    loss = loss_fn(logits, labels)      # labels 0, 1 and 2: this kernel fails later
    loss.backward()
    print(loss.item())                  # the traceback names this line
    ```

    ## Instead
    ```python
    # before torch is imported: every call waits for its kernel
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    loss = loss_fn(logits, labels)              # the traceback now ends here
    ```

    ## Thresholds
    None: the rule fires only after a device has failed.

    ## Known problems
    Calls that launch work on the device are recognised by their names, so a function of yours that runs only on
    the host may be listed. Work that was launched before the step and has not been synchronised since then is not
    listed.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("Asynchronous execution"); NVIDIA, "CUDA C++ Programming Guide"
    ("Asynchronous Concurrent Execution", and `CUDA_LAUNCH_BLOCKING` under "CUDA Environment Variables"); NVIDIA,
    "cuBLAS" (`cublasStatus_t`); NVIDIA, "NCCL" ("Troubleshooting").
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: AsynchronousErrorCrash) -> Finding | None:
        """Explain why the reported line is wrong, which calls are candidates, and how to find the failed one."""
        if symptom.blocking:
            return self._blocking(crash, symptom)
        line = _at(symptom.surfaced)
        message = (
            f"The device reported '{symptom.said}' while the host was {line}. The traceback points at the "
            "synchronisation point, not the failing call: device work is queued, and the host sees an "
            "error only at the next synchronisation. The message means that "
            f"{_MEANING[symptom.kind]}.{_kernel(symptom)}{_LOST}{_candidates(symptom)}"
        )
        newer = (_NEWER,) if _EXECUTION.search(symptom.said) else ()
        ranges = (_RANGES,) if symptom.kind == "assert" else ()
        return self._found(crash, symptom, message, (_again(crash), *newer, _CPU, *ranges))

    def _blocking(self, crash: CrashFacts, symptom: AsynchronousErrorCrash) -> Finding:
        message = (
            f"The device reported '{symptom.said}' while the host was {_at(symptom.surfaced)}. "
            "CUDA_LAUNCH_BLOCKING is set, so every call waited for its kernel: this line is the failing "
            f"call. The message means that {_MEANING[symptom.kind]}.{_kernel(symptom)}{_LOST}"
        )
        fix = "check the inputs of the failing line: the range of labels and indices, and all shapes"
        return self._found(crash, symptom, message, (fix, _CPU))

    def _found(self, crash: CrashFacts, symptom: AsynchronousErrorCrash, message: str, fix: Fix) -> Finding:
        surfaced = symptom.surfaced
        return self.found(
            (
                "This device is simulated: the error messages are CUDA's, but there is no GPU. "
                if symptom.simulated
                else ""
            )
            + message,
            fix=fix,
            evidence={
                "kind": symptom.kind,
                "said": symptom.said,
                "line_is_right": bool(symptom.blocking),
                "candidates": [f"{c.file}:{c.line} {c.code}" for c in symptom.candidates],
                "kernel": symptom.kernel,
                "assertion": symptom.assertion,
            },
            where=None if surfaced is None else Where(surfaced.file, surfaced.line, surfaced.function),
        )


def _at(surfaced: FrameFacts | None) -> str:
    if surfaced is None:
        return "already running other code"
    return f"at line {surfaced.line}" + (f", {surfaced.code}" if surfaced.code else "")


def _kernel(symptom: AsynchronousErrorCrash) -> str:
    if symptom.assertion is None:
        return ""
    if symptom.kernel is None:
        return f" The log names the assertion: {symptom.assertion}."
    return f" The log names the kernel, {symptom.kernel}, and its assertion: {symptom.assertion}."


def _candidates(symptom: AsynchronousErrorCrash) -> str:
    """List the candidate calls, one of which failed, each on its own line."""
    if not symptom.candidates:
        surfaced = symptom.surfaced
        return f" The failing call is somewhere before line {surfaced.line}." if surfaced else ""
    latest = symptom.candidates[-MOST_LISTED:]
    several = len({frame.file for frame in latest}) > 1
    places = [f"{frame.file}:{frame.line}" if several else str(frame.line) for frame in latest]
    width = max(map(len, places))
    lines = "".join(f"\n    {at:>{width}}  {frame.code}" for at, frame in zip(places, latest, strict=True))
    if len(latest) == 1:
        return f" The failing call is at or before line {latest[0].line}."
    return f" The failing call is on one of these lines:{lines}"


def _again(crash: CrashFacts) -> str:
    """Return the command that runs the script with blocking launches, if its name is known."""
    first = next((frame for frame in crash.frames if frame.yours), None)
    ends = "the traceback then ends at the failing line"
    if first is not None and first.function == "<module>" and first.file.endswith(".py"):
        return f"run CUDA_LAUNCH_BLOCKING=1 python {first.file}; {ends}"
    return f"run the script again with CUDA_LAUNCH_BLOCKING=1 in the environment; {ends}"
