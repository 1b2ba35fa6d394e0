"""`diagnose network`: checks whether the ranks of a job can communicate, and reports what prevents it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from diagnostics.errors import InvalidInput
from diagnostics.facts.gpu import in_bytes
from diagnostics.facts.ranks.network import STEPS, Bandwidth, NetworkFacts, RankFacts
from diagnostics.report.contents import StageResult, Status
from diagnostics.report.report import Report
from diagnostics.text.join import count_of, listed

PROCESSES = 2  # of our own, where no launcher has started this one
LIMIT_S = 30.0  # for each step; ranks that a scheduler starts come within seconds of each other
MAX_LINES = 16  # ranks that have a line of their own in the report


def look_at_network(
    *,
    processes: int | None = None,
    backend: str = "",
    limit: float = LIMIT_S,
    logs: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[NetworkFacts, Report | None]:
    """Test the network as one rank of the launcher that started this process, or between new local processes.

    All tests run in child processes, which have ended when this returns or raises.

    Args:
        processes: number of local processes to start; None for the launcher's ranks, or for 2 without a launcher.
        backend: ``gloo`` or ``nccl``; empty for NCCL if every rank has a GPU, otherwise gloo.
        limit: time limit for each step in seconds.
        logs: folder for the output of each rank's libraries; None to keep nothing.
        environment: of this process; `os.environ` if None.
        stopped: called from time to time; if it returns True, the test ends and reports what is known by then.

    Returns:
        The facts known to this process, and the report; None for the report if rank 0 also reports for this rank.

    Raises:
        InvalidInput: the launcher's variables contradict each other, or `logs` cannot be written.
    """
    from diagnostics.collectors.network.children import Children, own_specs
    from diagnostics.collectors.network.launcher import placement
    from diagnostics.collectors.network.read import network_facts
    from diagnostics.collectors.network.trial import Spec

    place = placement(os.environ if environment is None else environment) if processes is None else None
    if place is None:
        specs = own_specs(PROCESSES if processes is None else processes, backend, limit)
        launcher, world, address, viewpoint = "", len(specs), "127.0.0.1", None
    else:
        hosts = place.rank == 0 and not place.hosted
        token = f"diagnose-{place.run}"
        first = Spec(
            place.rank, place.world, place.local_rank, place.host, place.port, hosts, token, backend, limit
        )
        specs = [first]
        launcher, world, viewpoint = place.launcher, place.world, place.rank
        address = f"{place.host}:{place.port}"
    with Children(specs, None if logs is None else _made(logs)) as children:
        children.follow(stopped)
    facts = network_facts(
        children.tried, launcher=launcher, world=world, address=address, limit=limit, viewpoint=viewpoint
    )
    if viewpoint and children.tried[0].state.get("shared"):
        return facts, None
    return facts, network_report(facts)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--keep-logs was given {folder}, which is no folder to write to: {error.strerror}."
        ) from None
    return folder


def network_report(facts: NetworkFacts) -> Report:
    """Return the report: what each rank is, how far each of them got, and what is wrong."""
    from diagnostics.report.build import evaluated, finished, new_evaluator

    evaluator = new_evaluator()
    findings = [*evaluator.add(facts), *evaluator.close_phase()]
    return finished(
        evaluated(_title(facts), evaluator, findings, [NetworkFacts], stages=(*_ranks(facts), *_steps(facts)))
    )


def _title(facts: NetworkFacts) -> str:
    if facts.viewpoint:
        return f"rank {facts.viewpoint} of {facts.world} tried to join the others at {facts.address}"
    by = f" of {facts.launcher}" if facts.launcher else " on this host"
    over = f" over {facts.backend}" if facts.backend else ""
    return f"tried the network between {count_of(facts.world, 'rank')}{by}{over}"


def _ranks(facts: NetworkFacts) -> Iterator[StageResult]:
    for rank in facts.ranks[:MAX_LINES]:
        status: Status = "failed" if rank.failures or rank.ending else "passed"
        yield StageResult(f"rank {rank.number}", status, _described(rank))
    if len(facts.ranks) > MAX_LINES:
        rest = facts.ranks[MAX_LINES:]
        bad = any(rank.failures or rank.ending for rank in rest)
        yield StageResult("ranks", "failed" if bad else "passed", f"and {len(rest)} more")


def _described(rank: RankFacts) -> str:
    versions = ", ".join(f"{what} {version}" for what, version in rank.versions.items())
    parts = [f"{rank.host}, process {rank.pid}", rank.device, versions, rank.interface, *rank.networks]
    failures = (f"{one.step}: {one.kind or one.text}" for one in rank.failures)
    ending = [] if not rank.ending else [rank.ending if rank.ending == "ended" else f"ended, {rank.ending}"]
    return "; ".join(part for part in (*parts, *failures, *ending) if part)


def _steps(facts: NetworkFacts) -> Iterator[StageResult]:
    for step in STEPS:
        passed = [rank for rank in facts.ranks if step in rank.passed]
        failed = [rank for rank in facts.ranks if any(one.step == step for one in rank.failures)]
        lost = [rank for rank in facts.ranks if rank.ending and rank.begun == step and rank not in passed]
        if failed or lost:
            numbers = sorted({rank.number for rank in (*failed, *lost)})
            yield StageResult(
                step, "failed", f"on rank{'s' if len(numbers) > 1 else ''} {listed(numbers, most=8)}"
            )
        elif step == "roll call" and facts.missing:
            came = facts.world - len(facts.missing)
            yield StageResult(step, "failed", f"{came} of {facts.world} came to {facts.address}")
        elif passed and len(passed) == len(facts.ranks):
            yield StageResult(step, "passed", _detail(step, facts))
        else:
            yield StageResult(step, "not reached")


def _detail(step: str, facts: NetworkFacts) -> str:
    world = facts.world
    if step == "rendezvous":
        return f"at {facts.address}"
    if step == "connections":
        pairs = world * (world - 1) // 2
        return f"TCP, {count_of(pairs, 'pair')} both ways" if pairs else "one rank: none to make"
    if step == "group":
        return facts.backend
    if step == "exchange":
        return f"send and receive, {count_of(world * (world - 1) // 2, 'pair')}"
    if step == "bandwidth" and facts.bandwidth is not None:
        return bandwidth_line(facts.bandwidth, world)
    return ""


def bandwidth_line(measured: Bandwidth, world: int) -> str:
    """Return a sentence with the speed of an all-reduce, and the speed that the link is designed for.

    In a ring all-reduce, each rank sends 2 (n - 1) / n of the tensor over its link.
    """
    carried = measured.size * 2 * (world - 1) / world / measured.seconds
    said = (
        f"all-reduce of {in_bytes(measured.size)} in {measured.seconds * 1e3:.3g} ms, which is "
        f"{in_bytes(carried)}/s in each direction"
    )
    if measured.link is None:
        return said
    return f"{said}; the link of rank 0 is made for {in_bytes(measured.link)}/s"
