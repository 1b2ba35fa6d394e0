"""See `CollectiveTimeout`."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CollectiveTimeoutCrash, CrashFacts, WaitingRank
from diagnostics.text.join import capitalized, listed


class CollectiveTimeout(MessageRule):
    """A collective operation timed out because not every rank took part.

    ## What it does
    Recognises the timeout messages from NCCL's watchdog, gloo and the rendezvous, and reports which rank gave up,
    in which call, and after how long. If a log contains messages from several ranks, the rule compares their
    calls. Look first at the rank that is behind or made a different call.

    ## Why it is bad
    A collective completes only when all ranks have called it. The rank that reports the timeout is the one that
    waited. The cause is on another rank, which crashed, took a different branch, ran out of batches, or is still
    reading data or saving a checkpoint.

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
    The communication library sets the time limit: 10 minutes for NCCL, 30 for gloo, unless
    `init_process_group(timeout=...)` sets a different one.

    ## Known problems
    The output of one rank does not show what the others did.

    ## Sources
    The documentation for `torch.distributed.init_process_group` (timeout) and `TORCH_DISTRIBUTED_DEBUG`.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: CollectiveTimeoutCrash) -> Finding | None:
        """Report which ranks waited for what, and where to look."""
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
                "waiting": {str(one.rank): [one.operation, one.number] for one in symptom.waiting},
            },
            where=crash.where,
        )


def _rendezvous(symptom: CollectiveTimeoutCrash) -> tuple[str, Fix]:
    came, of = symptom.joined or (0, 0)
    waited = "" if symptom.seconds is None else f" within {symptom.seconds:,.0f} s"
    if came > of:
        return (
            f"{came} processes joined the rendezvous{waited}, but the world size is {of}: either two runs use "
            "the same MASTER_ADDR and MASTER_PORT, or more processes were started than init_process_group "
            "expects.",
            (
                "use torchrun --nproc_per_node=N, and call init_process_group without world_size and rank, "
                "which torchrun sets",
                "use a separate MASTER_PORT for each run on a machine, and kill processes left over from "
                "earlier runs",
                "set world_size to the total number of processes on all machines, not to the number of machines",
            ),
        )
    late = "The missing process" if of - came == 1 else "The other processes"
    return (
        f"{came} of {of} processes joined the rendezvous{waited}. {late} did not start, failed before "
        "init_process_group, or cannot reach MASTER_ADDR:MASTER_PORT.",
        (
            "read the logs of the processes that did not join",
            "check that MASTER_ADDR, MASTER_PORT and WORLD_SIZE are the same on every machine, and that the "
            "port is open",
        ),
    )


def _collective(symptom: CollectiveTimeoutCrash) -> tuple[str, Fix]:
    who = "A rank" if symptom.rank is None else f"Rank {symptom.rank}"
    call = "a collective" if symptom.operation is None else symptom.operation
    if (compared := _compared(symptom.waiting)) is not None:
        return compared
    which = "" if symptom.number is None else f" (collective number {symptom.number:,})"
    waited = "" if symptom.seconds is None else f" for {symptom.seconds:,.0f} s"
    return (
        f"{who} waited in {call}{which}{waited}, but at least one other rank never joined. The rank that reports "
        "the timeout is rarely the one at fault.",
        (
            "look for the first rank with a traceback, or for a rank whose log ends before this step",
            *_IN_ORDER,
            "if one rank needs more time to prepare data, raise the timeout: "
            "init_process_group(timeout=timedelta(hours=1))",
        ),
    )


def _compared(waiting: Sequence[WaitingRank]) -> tuple[str, Fix] | None:
    """Name the rank that is behind or in a different call; None if the log does not show it."""
    if len(waiting) < 2:
        return None
    lowest = min(one.number for one in waiting)
    behind = [one for one in waiting if one.number == lowest]
    if 2 * len(behind) <= len(waiting) and len(behind) < len(waiting):
        others = [one for one in waiting if one.number > lowest]
        single = len(behind) == 1
        return (
            f"{capitalized(_ranks(behind))} timed out in {behind[0].operation} number {lowest:,}, but "
            f"{_ranks(others)} timed out in {others[0].operation} number {others[0].number:,}. So "
            f"{_ranks(behind)} {'is' if single else 'are'} behind, and the other ranks are waiting for a "
            f"collective that {'it has' if single else 'they have'} not started.",
            (
                f"look at {_ranks(behind[:1])} first: find out what it did differently or what took so long",
                *_IN_ORDER,
            ),
        )
    by_call: dict[tuple[str, int | None], list[WaitingRank]] = {}
    for one in waiting:
        if one.number == lowest:
            by_call.setdefault((one.operation, one.elements), []).append(one)
    if len(by_call) < 2:
        return None
    first_call, *further = sorted(by_call.items(), key=lambda item: len(item[1]), reverse=True)
    ((call, size), most), ((other, other_size), few) = first_call, further[0]
    sizes = size != other_size and None not in (size, other_size)
    first, second = (f" of {number:,} elements" if sizes else "" for number in (size or 0, other_size or 0))
    return (
        f"Collective number {lowest:,} is {call}{first} on {_ranks(most)} but {other}{second} on "
        f"{_ranks(few)}. The ranks called different collectives, so no rank could finish.",
        (f"find out what {_ranks(few)} did differently", *_IN_ORDER),
    )


_IN_ORDER = (
    "call every collective on every rank, never inside `if rank == 0`, and give each rank the same number of "
    "batches",
    "set TORCH_DISTRIBUTED_DEBUG=DETAIL; the error then names the rank whose call does not match",
)


def _ranks(ranks: Sequence[WaitingRank]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {listed((one.rank for one in ranks), most=6)}"
