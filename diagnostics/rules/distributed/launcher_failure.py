"""See `LauncherFailure`."""

from __future__ import annotations

import signal

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.crash import CrashFacts, LauncherTail


class LauncherFailure(MessageRule):
    """The text contains only the launcher's report; the failed process's traceback is elsewhere.

    ## What it does
    If the text contains no worker traceback, the rule recognises the summaries that torchrun, srun, mpirun,
    accelerate and `torch.multiprocessing.spawn` print. It reports which rank failed first, and how.

    ## Why it is bad
    `ChildFailedError` says only that a child process failed. The cause is in the output of that process: further
    up, among the lines of other ranks, or in a file.

    ## Example
    ```python
    # torchrun --nproc-per-node 4 train.py
    # torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ...
    # error_file: <N/A>
    ```

    ## Instead
    ```python
    # torch.distributed.elastic.multiprocessing.errors.record, as a decorator,
    # writes the worker's traceback into the report
    @record
    def main(): ...
    ```

    ## Thresholds
    None.

    ## Known problems
    The launcher names the process whose exit it noticed first, but another process may have failed earlier.

    ## Sources
    The "Error Propagation" page of the Torch Distributed Elastic documentation, and the torchrun documentation
    (`--log-dir`, `--tee`).
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: LauncherTail) -> Finding | None:
        """Report which process failed, and how to get its traceback."""
        who = "A process" if symptom.rank is None else f"Rank {symptom.rank}"
        return self.found(
            f"{who} {_ended(symptom.exit_code)}, and {symptom.launcher} reports nothing else. The cause is in "
            "that process's own output, above this message or in its log.",
            fix=(
                _LOGS.get(
                    symptom.launcher,
                    "find the first traceback in the log, and pass the whole log to `diagnose explain`",
                ),
                "decorate main() with torch.distributed.elastic.multiprocessing.errors.record to get its "
                "traceback",
                "run the script in one process: python train.py",
            ),
            evidence={"launcher": symptom.launcher, "rank": symptom.rank, "exit_code": symptom.exit_code},
            where=crash.where,
        )


_LOGS = {
    "torchrun": "run torchrun --log-dir logs --tee 3 ..., and read the stderr of the failed process",
    "srun": "run srun --label --output log_%t.txt ..., and pass the log of the failed task to `diagnose explain`",
    "mpirun": "run mpirun --output tag ... (--tag-output before version 5), and read the lines of the failed "
    "process",
}


def _ended(code: int | None) -> str:
    if code is None:
        return "failed"
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name} (exit code {code})"
        except ValueError:
            pass
    if (meaning := _OF_WINDOWS.get(code)) is not None:
        return f"exited with code {code} (the Windows code for {meaning})"
    return f"exited with code {code}"


_OF_WINDOWS = {
    0xC0000005: "an access violation: compiled code crashed, or memory and page file ran out",
    0xC0000017: "too little memory",
    0xC000001D: "an illegal instruction: a package was built for a newer processor",
    0xC0000135: "a DLL that was not found",
    0xC0000142: "a DLL that could not be started",
    0xC00000FD: "a stack overflow",
    0xC0000409: "an abort after memory corruption was detected",
}
"""Windows exit codes and their meanings."""
