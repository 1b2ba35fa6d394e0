"""See `CollectiveTimeout`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import CollectiveTimeoutCrash


class CollectiveTimeout(MessageRule):
    """A collective was given up: not every rank took part in time.

    ## What it does
    Recognises the messages of NCCL's watchdog, of gloo and of the rendezvous, and reads which rank gave up, in
    which call, after how long.

    ## Why it is bad
    A collective ends when all ranks have made it. The rank that reports the timeout is the one that waited. The
    cause is in another: it crashed, took another branch, has fewer batches, or is still reading data or saving a
    checkpoint.

    ## Example
    ```python
    if rank == 0:
        loss_mean = all_reduce(loss)      # the others never call it
    ```

    ## Instead
    ```python
    loss_mean = all_reduce(loss)          # on every rank
    if rank == 0:
        log(loss_mean)
    ```

    ## Thresholds
    The time limit is the communication library's: 10 minutes for NCCL, 30 for gloo, unless
    `init_process_group(timeout=...)` says otherwise.

    ## Known problems
    The text of one rank does not show what the others did.

    ## Sources
    The documentation of `torch.distributed.init_process_group` (timeout) and of `TORCH_DISTRIBUTED_DEBUG`.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: CollectiveTimeoutCrash) -> Finding | None:
        """Say who waited for what, and where to look."""
        message, fix = _rendezvous(symptom) if symptom.joined is not None else _collective(symptom)
        return self.found(
            message,
            fix=fix,
            evidence={
                "rank": symptom.rank,
                "operation": symptom.operation,
                "number": symptom.number,
                "seconds": symptom.seconds,
                "joined": None if symptom.joined is None else list(symptom.joined),
            },
            where=crash.where,
        )


def _rendezvous(symptom: CollectiveTimeoutCrash) -> tuple[str, Fix]:
    came, of = symptom.joined or (0, 0)
    waited = "" if symptom.seconds is None else f" within {symptom.seconds:,.0f} s"
    return (
        f"{came} of {of} processes came to the rendezvous{waited}. The others did not start, failed before "
        "init_process_group, or cannot reach MASTER_ADDR:MASTER_PORT.",
        (
            "look into the logs of the processes that did not join",
            "check that MASTER_ADDR, MASTER_PORT and WORLD_SIZE are the same everywhere, and the port is open",
        ),
    )


def _collective(symptom: CollectiveTimeoutCrash) -> tuple[str, Fix]:
    who = "A rank" if symptom.rank is None else f"Rank {symptom.rank}"
    call = "a collective" if symptom.operation is None else symptom.operation
    which = "" if symptom.number is None else f" (number {symptom.number:,})"
    waited = "" if symptom.seconds is None else f" for {symptom.seconds:,.0f} s"
    return (
        f"{who} waited in {call}{which}{waited}, and another rank did not take part. The rank that reports the "
        "timeout is seldom the one at fault.",
        (
            "look for the first rank with a traceback, or without a line for the same step",
            "make every collective on every rank: none under if rank == 0, the same number of batches on all",
            "TORCH_DISTRIBUTED_DEBUG=DETAIL, which names the rank and the call that differ",
            "init_process_group(timeout=timedelta(hours=1)), if one rank prepares data for longer than that",
        ),
    )
