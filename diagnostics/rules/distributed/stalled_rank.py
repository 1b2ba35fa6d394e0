"""See `StalledRank`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.ranks.stall import StalledRank as Stalled
from diagnostics.facts.ranks.stall import StallFacts
from diagnostics.rules.shared.stall import by_call, call, duration, elsewhere, place, waiting, who
from diagnostics.text.join import capitalized, count_of


class StalledRank(Rule):
    """No rank moves: one of them does not come to the collective that the others wait in.

    ## What it does
    Under `diagnose run` of several processes, a thread looks now and then whether a step ended, a collective was
    made, or the main thread is at another instruction. If none of this is so on any rank of the host for the time
    of `--stall-timeout`, it says where each rank stands.

    ## Why it is bad
    The ranks that wait are the ones that time out, and their message names themselves. The cause is where the last
    one stands: in a lock, in a read from a file system that does not answer, in a data loader whose workers died.

    ## Example
    ```python
    if rank == 0:
        features = requests.get(URL)     # no timeout: rank 0 waits here, and the others in the next backward pass
    ```

    ## Instead
    ```python
    if rank == 0:
        features = requests.get(URL, timeout=30)
    ```

    ## Thresholds
    20 minutes, more than a large checkpoint takes to be written, unless `--stall-timeout` says otherwise. Before
    the first step nothing is reported: to prepare data may take hours.

    ## Known problems
    Work of more than 20 minutes in one call from Python looks the same: a rank that waits for another program. A
    thread that holds Python's lock within C keeps also this library from looking.

    ## Sources
    The documentation of Python's `faulthandler` and of `torch.distributed.init_process_group` (timeout).
    """

    severity = "warning"
    causes = ("collective-timeout",)

    @check
    def from_stall(self, stall: StallFacts) -> Finding | None:
        """Say who waits for whom."""
        waits, absent = waiting(stall), elsewhere(stall)
        for_long = f"For {duration(min(rank.idle for rank in stall.ranks))} no rank has moved."
        unknown = stall.world - len(stall.ranks)
        if waits and absent:
            message = (
                f"{for_long} {capitalized(who(absent))} {_stands(absent)}, and {who(waits)} "
                f"{'wait' if len(waits) > 1 else 'waits'} in {call(waits[0])}."
            )
            where = absent[0].where
        elif waits:
            if len(by_call(waits)) > 1:  # that is mismatched-collective
                return None
            message = f"{for_long} All {count_of(len(waits), 'rank')} known here wait in {call(waits[0])}."
            message += (
                f" The other {count_of(unknown, 'rank')} may not have come to it."
                if unknown
                else " Every rank has made this call, so the messages between them do not arrive."
            )
            where = waits[0].where
        else:
            message = f"{for_long} None of them is in a collective: {_stands(absent, by_name=True)}."
            where = absent[0].where
        return self.found(
            message,
            fix=_fixes(bool(waits and absent), bool(absent), unknown),
            evidence={
                "ranks": {
                    str(rank.number): {
                        "collective": rank.collective,
                        "made": rank.made,
                        "steps": rank.steps,
                        "idle_s": round(rank.idle),
                        "where": None if rank.where is None else str(rank.where),
                        "inside": rank.inside,
                        "threads": list(rank.threads),
                    }
                    for rank in stall.ranks
                }
            },
            where=where,
        )


def _stands(ranks: list[Stalled], *, by_name: bool = False) -> str:
    first = ranks[0]
    name = f"rank {first.number} " if by_name else ""
    verb = "stands" if by_name or len(ranks) == 1 else "stand"
    inside = (
        "" if first.where is None or first.inside.startswith(f"{first.where.file}:") else f", in {first.inside}"
    )
    code = f" ({first.code})" if first.code else ""
    return f"{name}{verb}{place(first) or f' in {first.inside}'}{code}{inside}"


def _fixes(one_is_late: bool, somebody_works: bool, unknown: int) -> tuple[str, ...]:
    if one_is_late:
        first = "look at the line where the late rank stands: a lock, a read or a request without a time limit"
    elif somebody_works:
        first = "look at the line where each rank stands: a lock, a read or a request without a time limit"
    elif unknown:
        first = (
            "read the reports of the other hosts' ranks; diagnose run --output on a folder that all hosts share"
        )
    else:
        first = "diagnose network, started as the job is: it names the pairs that cannot talk"
    return (
        first,
        "if it is at work, as with a checkpoint or an evaluation: --stall-timeout with more seconds, and "
        "init_process_group(timeout=...)",
    )
