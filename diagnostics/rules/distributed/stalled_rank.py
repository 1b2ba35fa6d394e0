"""See `StalledRank`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.ranks.stall import StalledRank as Stalled
from diagnostics.facts.ranks.stall import StallFacts
from diagnostics.rules.shared.stall import by_call, call, duration, elsewhere, place, waiting, who
from diagnostics.text.join import capitalized, count_of


class StalledRank(Rule):
    """No rank makes progress, because one of them does not reach the collective that the others are waiting in.

    ## What it does
    Under `diagnose run` with several processes, a thread checks whether any rank on the host makes progress: a
    step ends, a collective is called, or the main thread moves on. If no rank makes progress for the duration of
    `--stall-timeout`, the rule reports where each rank is.

    ## Why it is bad
    The ranks that time out are the ones that waited, and their messages name only themselves. The remaining rank
    is stuck: in a lock, in a read from a file system that does not respond, or in a data loader whose workers
    died.

    ## Example
    ```python
    if rank == 0:
        # no timeout: rank 0 waits here, the others in the next backward pass
        features = requests.get(URL)
    ```

    ## Instead
    ```python
    if rank == 0:
        features = requests.get(URL, timeout=30)
    ```

    ## Thresholds
    A stall is reported after 20 minutes without progress, unless `--stall-timeout` sets a different limit. Nothing
    is reported before the first step, because preparing data may take hours.

    ## Known problems
    A single Python call that takes more than 20 minutes, such as one that waits for another program, is wrongly
    reported.

    ## Sources
    The documentation for Python's `faulthandler` and `torch.distributed.init_process_group` (timeout).
    """

    severity = "warning"
    causes = ("collective-timeout",)

    @check
    def from_stall(self, stall: StallFacts) -> Finding | None:
        """Report which ranks wait for which."""
        waits, absent = waiting(stall), elsewhere(stall)
        for_long = f"No rank has made progress for {duration(min(rank.idle for rank in stall.ranks))}."
        unknown = stall.world - len(stall.ranks)
        if waits and absent:
            message = (
                f"{for_long} {capitalized(who(absent))} {_position(absent)}. {capitalized(who(waits))} "
                f"{'are' if len(waits) > 1 else 'is'} waiting in {call(waits[0])}."
            )
            where = absent[0].where
        elif waits:
            if len(by_call(waits)) > 1:  # that is mismatched-collective
                return None
            every = "Both" if len(waits) == 2 else f"All {len(waits)}"
            message = f"{for_long} {every} ranks that reported are waiting in {call(waits[0])}."
            message += (
                f" The other {count_of(unknown, 'rank')} may not have reached this call."
                if unknown
                else " Every rank has made this call, so messages between the ranks are not arriving."
            )
            where = waits[0].where
        else:
            message = f"{for_long} No rank is in a collective: {_position(absent, by_name=True)}."
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


def _position(ranks: list[Stalled], *, by_name: bool = False) -> str:
    first = ranks[0]
    name = f"rank {first.number} " if by_name else ""
    verb = "is" if by_name or len(ranks) == 1 else "are"
    here = first.where is None or first.inside.startswith(f"{first.where.file}:")
    inside = "" if here else f" and, within that call, at {first.inside}"
    code = f" ({first.code})" if first.code else ""
    return f"{name}{verb}{place(first) or f' in {first.inside}'}{code}{inside}"


def _fixes(one_is_late: bool, somebody_works: bool, unknown: int) -> tuple[str, ...]:
    if one_is_late:
        first = "look for a lock, a read or a request without a timeout on the line where the late rank is"
    elif somebody_works:
        first = "look for a lock, a read or a request without a timeout on the line where each rank is"
    elif unknown:
        first = (
            "read the reports of the ranks on other hosts: `diagnose run --output FOLDER`, with a folder that "
            "all hosts share"
        )
    else:
        first = "run `diagnose network` the same way you start the job: it names the ranks that cannot communicate"
    return (
        first,
        "if the rank is busy, for example with a checkpoint or an evaluation, set a longer --stall-timeout and "
        "a longer init_process_group(timeout=...)",
    )
