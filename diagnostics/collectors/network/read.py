"""Turns what the ranks wrote down, and their libraries' logs, into facts."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from diagnostics.collectors.crash.classify import symptoms
from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash import CrashFacts, KnownFailure
from diagnostics.facts.ranks.network import STEPS, Bandwidth, NetworkFacts, NetworkFailure, RankFacts

from .children import QUIET_S, Tried
from .rendezvous import MOST_SAID

MOST_LOG = 400_000  # characters of a log's end
MOST_LINES = 200  # of a log that may name an error

_USES = re.compile(r"NCCL INFO (NET/\w+) : Using (.{1,200})")
_ERROR = re.compile(r"NCCL WARN|[Ee]rror|[Ff]ailed|[Uu]nable to|refused|closed by peer")
_QUIET = re.compile(r"\[c10d\]|TCPStore|socket\.cpp")  # the store's client tries again, and logs each attempt


def network_facts(
    tried: Sequence[Tried],
    *,
    launcher: str,
    world: int,
    address: str,
    limit: float,
    viewpoint: int | None,
) -> NetworkFacts:
    """Return what is known of all ranks.

    Args:
        tried: the child processes of ours: of all ranks, or of one.
        launcher: as in `NetworkFacts`.
        world: as in `NetworkFacts`.
        address: as in `NetworkFacts`; without a port if the children chose it.
        limit: as in `NetworkFacts`.
        viewpoint: as in `NetworkFacts`.
    """
    ranks = {one.spec.rank: _of_child(one, limit) for one in tried}
    first = next((one for one in tried if one.spec.rank == 0), None)
    states = {one.spec.rank: one.state for one in tried}
    if first is not None and first.others is not None:
        for number, noted in first.others.items():
            states.setdefault(int(number), noted)
            ranks.setdefault(int(number), rank_facts(int(number), noted))
    state: Mapping[str, Any] = {} if first is None else first.state
    # Rank 0 calls the roll: the others do not know who came.
    missing = [] if "present" not in state else sorted(set(range(world)) - {*ranks, *state["present"]})
    claims = {int(rank): tuple(who) for rank, who in state.get("claims", {}).items()}
    own = next(iter(states.values()), {}) if viewpoint else state
    return NetworkFacts(
        launcher=launcher,
        world=world,
        address=address if ":" in address else f"{address}:{own.get('port', '?')}",
        backend=next((s["backend"] for s in states.values() if s.get("backend")), ""),
        limit=limit,
        ranks=tuple(ranks[number] for number in sorted(ranks)),
        missing=tuple(missing),
        claims=claims,
        bandwidth=_bandwidth(state),
        viewpoint=viewpoint,
    )


def _bandwidth(state: Mapping[str, Any]) -> Bandwidth | None:
    if "bandwidth" not in state:
        return None
    size, seconds = state["bandwidth"]
    return Bandwidth(size, seconds, state.get("link"))


def rank_facts(number: int, state: Mapping[str, Any], log: str = "") -> RankFacts:
    """Return what a rank wrote down; `log`: what its libraries printed, as far as it is here."""
    failures = tuple(
        NetworkFailure(one["step"], one["kind"], one["text"], one["peer"], _known(one["text"]))
        for one in state.get("failures", ())
    )
    if failures and not any(failure.known for failure in failures):
        failures = (replace(failures[0], known=known_in_log(log)), *failures[1:])
    return RankFacts(
        number=number,
        host=state.get("host", ""),
        pid=state.get("pid", 0),
        device=state.get("device", ""),
        interface=state.get("interface", ""),
        addresses=tuple(state.get("addresses", ())),
        resolved=state.get("resolved", ""),
        versions=state.get("versions", {}),
        begun=state.get("begun", ""),
        passed=tuple(state.get("passed", ())),
        failures=failures,
        ending=state.get("ending", ""),
        networks=tuple(dict.fromkeys(f"{kind}: {what.strip()}" for kind, what in _USES.findall(log))),
    )


def _of_child(one: Tried, limit: float) -> RankFacts:
    """Return what a child of ours wrote down, and how it ended, if it ended too early."""
    state = {"host": socket.gethostname(), "pid": one.pid, **one.state}
    rank = rank_facts(one.spec.rank, state, one.log)
    if one.state.get("over") or (one.code is None and not one.silent):
        return rank
    if one.code is None:
        stuck = NetworkFailure(rank.begun or STEPS[0], "stuck", f"{limit + QUIET_S:.0f} s")
        return replace(rank, failures=(*rank.failures, stuck))
    if one.code < 0:
        with contextlib.suppress(ValueError):
            return replace(rank, ending=signal.Signals(-one.code).name)
    said = next((f" ({line.strip()[:MOST_SAID]})" for line in reversed(one.log.splitlines()) if line.strip()), "")
    return replace(rank, ending=f"exit code {one.code}{said}")


def _known(text: str) -> KnownFailure | None:
    """Return what the table of messages says of an error, if the row explains itself."""
    name, _, message = text.partition(": ")
    for symptom in symptoms(Crash(CrashFacts(name, message, (), live=False), log=text)) if text else []:
        if isinstance(symptom, KnownFailure):
            return symptom
    return None


def known_in_log(log: str) -> KnownFailure | None:
    """Return what the table says of the first line of a log that it knows; None if it knows none."""
    lines = (line for line in log[-MOST_LOG:].splitlines() if _ERROR.search(line) and not _QUIET.search(line))
    for _, line in zip(range(MOST_LINES), lines, strict=False):
        if (known := _known(f"DistBackendError: {line.strip()}")) is not None:
            return known
    return None
