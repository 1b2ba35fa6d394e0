"""See `WorkerFailure`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class WorkerFailure(MessageRule):
    """A data loader worker or another process of the script failed to start, or died.

    ## What it does
    Recognises errors raised by `multiprocessing`, and errors that the data loader raises about its workers.

    ## Why it is bad
    Each worker is a separate process. On platforms that spawn processes (Windows, macOS), the dataset is pickled
    for each worker. Lambdas, local functions, open files and locks cannot be pickled, and the child process then
    reports only `EOFError: Ran out of input`. A worker that is killed by a signal cannot report anything.

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
    PyTorch, "Multiprocessing best practices"; "Platform-specific behaviors" in its documentation for
    `torch.utils.data`; "Programming guidelines" in Python's documentation for `multiprocessing`.
    """

    severity = "error"
