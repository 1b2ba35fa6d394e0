"""See `WorkerFailure`."""

from __future__ import annotations

import re

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import WorkerCrash

OWN_ERROR = "DataLoader(..., num_workers=0), which raises the worker's own error in the main process"

SEEN: dict[str, tuple[str, Fix]] = {
    "main guard": (
        "Each new process imports the script again, and the script itself starts processes when it is imported.",
        'put the training under if __name__ == "__main__":',
    ),
    "cuda fork": (
        "A process was forked after CUDA had been initialised, and CUDA does not work in a forked process.",
        (
            "keep tensors on the CPU in the dataset; move the batch to the GPU in the training loop",
            'DataLoader(..., multiprocessing_context="spawn")',
        ),
    ),
    "files": (
        "The workers pass each tensor through its own file descriptor, and the limit on open files has been "
        "reached.",
        (
            'torch.multiprocessing.set_sharing_strategy("file_system")',
            "ulimit -n 65535, before Python starts",
            "do not collect batches in a list; keep copies of the values you need",
        ),
    ),
    "exited": (
        "A data loader worker ended without an exception that Python could pass on.",
        (
            OWN_ERROR,
            "ulimit -v and dmesg, to see whether the system killed the worker for lack of memory",
            'put the training under if __name__ == "__main__":, on Windows and macOS',
        ),
    ),
    "spawned": (
        "A worker ended while starting. Where processes are spawned (Windows, macOS), a worker imports the script "
        "again and gets the dataset through pickle. The worker's own error is elsewhere in the output.",
        (
            'put the training under if __name__ == "__main__":',
            "define the dataset's class in its own module, not in a notebook cell",
            OWN_ERROR,
        ),
    ),
    "signal": (
        "A data loader worker was killed by a signal, so it could not raise an exception.",
        (
            OWN_ERROR,
            "for a bus error, which means that /dev/shm is full: docker run --shm-size=8g",
            "python -X faulthandler, for a segmentation fault: this prints the line",
        ),
    ),
}


class WorkerFailure(MessageRule):
    """A data loader worker, or another process of the script, could not start or died.

    ## What it does
    Recognises the errors of `multiprocessing`, and those that the data loader raises about its workers.

    ## Why it is bad
    Each worker is a separate process. On platforms that spawn processes (Windows, macOS), the dataset is pickled
    for it, and lambdas, local functions, open files and locks cannot be pickled; the child process then reports
    only `EOFError: Ran out of input`. A worker that is killed by a signal cannot report anything.

    ## Example
    ```python
    dataset = Images(paths, transform=lambda image: image / 255)
    loader = DataLoader(dataset, num_workers=4)
    ```

    ## Instead
    ```python
    def to_unit(image):
        return image / 255

    dataset = Images(paths, transform=to_unit)
    loader = DataLoader(dataset, num_workers=4)
    ```

    ## Thresholds
    None: the rule fires only after a process has failed.

    ## Known problems
    The loader's message does not show why a worker died without an exception.

    ## Sources
    PyTorch's "Multiprocessing best practices" and "Platform-specific behaviors" of `torch.utils.data`; Python's
    "Programming guidelines" of `multiprocessing`.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: WorkerCrash) -> Finding | None:
        """Explain why the process could not start, or how it ended."""
        message, fix = _pickle(symptom.what, crash) if symptom.kind == "pickle" else SEEN[symptom.kind]
        if symptom.kind == "signal" and symptom.what is not None:
            message = (
                f"A data loader worker was killed by a signal ({symptom.what}), so it could not raise an "
                "exception."
            )
        return self.found(
            message, fix=fix, evidence={"kind": symptom.kind, "what": symptom.what}, where=crash.where
        )


def _pickle(what: str | None, crash: CrashFacts) -> tuple[str, Fix]:
    named = "An object of the dataset" if what is None else what
    hidden = " The parent process names the object, above the child's EOFError." if what is None else ""
    if what is not None and not crash.frames:  # the message alone does not show which code pickles
        return (
            f"{named} cannot be pickled. Spawned processes (Windows, macOS, notebooks) get the dataset through "
            "pickle, and copy.deepcopy and functions that save whole objects also use pickle.",
            (
                "for a dataset: open files, connections and locks in __getitem__ or worker_init_fn, not in "
                "__init__, and define functions at the top of a module; or DataLoader(..., num_workers=0)",
                (
                    "for a model that is copied or saved: save its weights, and do not store loggers, modules or "
                    "locks in it"
                ),
            ),
        )
    in_process = (
        "workers=1 and use_multiprocessing=False, in fit or (Keras 3) in the Sequence's own __init__"
        if any(re.search(r"(?:^|/)keras/", frame.file.replace("\\", "/")) for frame in crash.frames)
        else "DataLoader(..., num_workers=0)"
    )
    return (
        f"{named} cannot be pickled, but a spawned process gets the dataset through pickle.{hidden}",
        (
            "define functions at the top of a module, instead of lambdas and local functions",
            "open files, connections and locks in __getitem__ or worker_init_fn, not in __init__",
            in_process,
        ),
    )
