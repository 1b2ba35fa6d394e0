"""See `AsynchronousError`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.crash import AsynchronousErrorCrash, CrashFacts, FrameFacts
from diagnostics.facts.where import Where

MOST_LISTED = 6  # the latest candidates; the evidence holds them all

_MEANING = {
    "assert": (
        "a kernel's own check failed there, nearly always of an index: a label past the model's last output, or a "
        "token id past the embedding's last row"
    ),
    "memory access": (
        "a kernel read or wrote memory that is not its own, usually by an index out of range that nothing checks"
    ),
    "launch": "a kernel was ended before it was done, and said no more than that",
    "library": "",
    "nccl": "",
}
_LOST = " The device is lost to this process: every later call fails likewise, until it is started anew."
_CPU = (
    'or run it on the CPU (device = "cpu" and one batch, or diagnose run --replay-on-cpu), which stops at the '
    "failing line and names the index"
)


class AsynchronousError(Rule):
    """The traceback's line is only where the host waited for the device, not where the work failed.

    ## What it does
    Recognises the errors that a device reports late (device-side asserts, illegal memory accesses, launch
    failures), and those of cuBLAS, cuDNN and NCCL that mostly come of something else. Lists the lines of the
    training step, up to the one that surfaced, that gave work to the device: one of them failed. Where the host
    still knows the labels and the number of outputs, or the log holds the kernel's own line, the cause is
    reported as well, under its own name.

    ## Why it is bad
    An operation on a GPU is queued, and the call returns before it has run. Python goes on, and hears of a
    failure only where it next waits: at `loss.item()`, at a copy to the CPU, in `backward()`. The traceback
    names that line, and a search begins in the wrong place. All that is queued behind a failed kernel fails,
    too, and the process cannot use the device any more.

    ## Example
    ```python
    logits = model(inputs)              # two outputs
    loss = loss_fn(logits, labels)      # labels 0, 1 and 2: this kernel fails, some time later
    loss.backward()
    print(loss.item())                  # and this line is blamed
    ```

    ## Instead
    ```python
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"    # before torch is imported: every call waits for its kernel
    loss = loss_fn(logits, labels)              # the traceback now ends here
    ```

    ## Thresholds
    None: it is found only once a device has failed.

    ## Known problems
    Which calls give work to a device is read off the source, by their names: a function of your own that only
    computes on the host is listed, too. What was launched before the step began, and not waited for since, is
    not listed. From the text of a traceback the environment is not known, so blocking launches are not either.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("Asynchronous execution"); NVIDIA, "CUDA C++ Programming Guide"
    ("Asynchronous Concurrent Execution", and `CUDA_LAUNCH_BLOCKING` under "CUDA Environment Variables");
    NVIDIA, "cuBLAS" (`cublasStatus_t`); NVIDIA, "NCCL" ("Troubleshooting").
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: AsynchronousErrorCrash) -> Finding | None:
        """Say why the line is not to be trusted, which calls remain, and how to get the one that failed."""
        if symptom.kind == "library":
            return self._library(crash, symptom)
        if symptom.kind == "nccl":
            return self._nccl(crash, symptom)
        if symptom.blocking:
            return self._blocking(crash, symptom)
        line = _at(symptom.surfaced)
        message = (
            f"The device reported '{symptom.said}' while the host was {line}, but that is only where the host "
            "heard of it. Work for a device is queued and the host goes on; it learns of a failure where it next "
            f"waits. What it means: {_MEANING[symptom.kind]}.{_kernel(symptom)}{_LOST}{_listed(symptom)}"
        )
        return self._found(crash, symptom, message, f"{_again(crash)}, {_CPU}")

    def _blocking(self, crash: CrashFacts, symptom: AsynchronousErrorCrash) -> Finding:
        message = (
            f"The device reported '{symptom.said}' while the host was {_at(symptom.surfaced)}. "
            "CUDA_LAUNCH_BLOCKING is set, so every call waited for its kernel: the line is right, and this call "
            f"is the one that failed. What it means: {_MEANING[symptom.kind]}.{_kernel(symptom)}{_LOST}"
        )
        fix = f"look at what this line is given: the range of labels and indices, and the shapes; {_CPU}"
        return self._found(crash, symptom, message, fix)

    def _library(self, crash: CrashFacts, symptom: AsynchronousErrorCrash) -> Finding:
        message = (
            f"A library of the device could not be started or given memory ({symptom.said}). It asks for memory "
            "of its own on first use, so this mostly means that the card is full, and often of other processes' "
            "memory. Otherwise a kernel failed before, by an index out of range for instance, and this is the "
            "first call that hears of it: then the line is not the one to look at."
        )
        fix = "see who holds the card: diagnose gpu, or nvidia-smi. If it has room: " + _again(crash)
        return self._found(crash, symptom, message, fix)

    def _nccl(self, crash: CrashFacts, symptom: AsynchronousErrorCrash) -> Finding:
        message = (
            f"Communication between the ranks failed ({symptom.said}). Collectives run on the device and are "
            "waited for later, so the line is where this rank heard of it; and most ranks fail only because "
            "another one did. The cause stands in the log of the rank that failed first: an exception of its own, "
            "a kernel that failed, or a machine that cannot be reached."
        )
        fix = "read the earliest traceback of all ranks; NCCL_DEBUG=INFO makes each say what it could not do"
        return self._found(crash, symptom, message, fix)

    def _found(self, crash: CrashFacts, symptom: AsynchronousErrorCrash, message: str, fix: str) -> Finding:
        surfaced = symptom.surfaced
        return self.found(
            ("A simulated device: CUDA's words, no card. " if symptom.simulated else "") + message,
            fix=fix,
            evidence={
                "kind": symptom.kind,
                "said": symptom.said,
                "line_is_right": bool(symptom.blocking) and symptom.kind in ("assert", "memory access", "launch"),
                "candidates": [f"{c.file}:{c.line} {c.code}" for c in symptom.candidates],
                "kernel": symptom.kernel,
                "assertion": symptom.assertion,
            },
            where=None if surfaced is None else Where(surfaced.file, surfaced.line, surfaced.function),
        )


def _at(surfaced: FrameFacts | None) -> str:
    if surfaced is None:
        return "elsewhere"
    return f"at line {surfaced.line}" + (f", {surfaced.code}" if surfaced.code else "")


def _kernel(symptom: AsynchronousErrorCrash) -> str:
    if symptom.assertion is None:
        return ""
    return f" The log names the kernel, {symptom.kernel}, and its check: {symptom.assertion}."


def _listed(symptom: AsynchronousErrorCrash) -> str:
    """List the calls one of which failed, each on a line of its own."""
    if not symptom.candidates:
        return " What failed was launched before, by a line above that one." if symptom.surfaced else ""
    latest = symptom.candidates[-MOST_LISTED:]
    several = len({frame.file for frame in latest}) > 1
    places = [f"{frame.file}:{frame.line}" if several else str(frame.line) for frame in latest]
    width = max(map(len, places))
    lines = "".join(f"\n    {at:>{width}}  {frame.code}" for at, frame in zip(places, latest, strict=True))
    if len(latest) == 1:
        return f" What failed was launched somewhere within line {latest[0].line}, or before it."
    return f" What failed was launched by one of these lines:{lines}"


def _again(crash: CrashFacts) -> str:
    """Write the command that runs the script with blocking launches, if its name is known."""
    first = next((frame for frame in crash.frames if frame.yours), None)
    ends = "the traceback then ends at the line that failed"
    if first is not None and first.function == "<module>" and first.file.endswith(".py"):
        return f"run it again as CUDA_LAUNCH_BLOCKING=1 python {first.file}: {ends}"
    return f"run it again with CUDA_LAUNCH_BLOCKING=1 in the environment: {ends}"
