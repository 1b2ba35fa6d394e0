"""See `UnreachableRank`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.ranks.network import NetworkFacts, NetworkFailure, RankFacts
from diagnostics.text.join import capitalized, count_of, listed

MAX_TOLD = 2  # problems in the message: further ones usually follow from the first

MAX_NAMED = 6  # ranks or pairs in a sentence; the evidence holds them all
SAME_EVERYWHERE = "on every host, set MASTER_ADDR and MASTER_PORT to the address and port of rank 0"
ALL_PORTS = (
    "open all TCP ports between the hosts in the firewall or security group: besides MASTER_PORT, NCCL and "
    "Gloo use random free ports"
)
SHARED_INTERFACE = (
    "set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to an interface that all hosts have, such as eth0 (`ip -br "
    "addr` lists the interfaces)"
)


class UnreachableRank(MessageRule):
    """A rank cannot reach the others, or cannot use its device.

    ## What it does
    Recognises three kinds of messages from NCCL, gloo and the rendezvous:

    - connections that were refused, closed or never established
    - two ranks that use the same GPU
    - a GPU that does not exist

    `diagnose network` tests the device, the rendezvous, the TCP connections between all ranks, and a few
    collectives.

    ## Why it is bad
    No collective can start. The rank that reports the failure is often the one that was waiting. The cause is in
    the log or environment of another rank, or in the network between the two.

    ## Example
    ```python
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Net().cuda())        # every rank takes GPU 0
    ```

    ## Instead
    ```python
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Net().cuda(), device_ids=[local_rank])
    ```

    ## Thresholds
    For a log or traceback, there is no threshold: a call has already failed. `diagnose network` allows 30 s for
    each step (`--limit`), and 120 s to import PyTorch.

    ## Known problems
    The output of one rank shows that a connection failed, but rarely why the other side closed it.
    `diagnose network` uses TCP over IPv4. It misses faults that appear only with large messages or after hours of
    training.

    ## Sources
    The documentation for `torch.distributed` and torchrun; NCCL, "Environment Variables" and "Troubleshooting".
    """

    severity = "error"

    @check
    def from_network(self, network: NetworkFacts) -> Finding | None:
        """Name the ranks or pairs that failed, and the step at which they did."""
        found = problems(network)
        if not found:
            return None
        told = found[:MAX_TOLD]
        more = [f"({len(found) - MAX_TOLD} more in the stages above.)"] if len(found) > MAX_TOLD else []
        return self.found(
            " ".join([*(problem.sentence for problem in told), *more]),
            fix=tuple(dict.fromkeys(fix for problem in told for fix in problem.fixes)),
            evidence={
                "address": network.address,
                "world": network.world,
                "missing": list(network.missing),
                "ranks": sorted({number for problem in found for number in problem.ranks}),
                "pairs": [list(pair) for problem in found for pair in problem.pairs],
                "limit_s": network.limit,
            },
        )


@dataclass(frozen=True)
class Problem:
    """A sentence or two about what is wrong, and what to change.

    Attributes:
        ranks: the ranks concerned.
        pairs: ranks that cannot communicate with each other.
    """

    sentence: str
    fixes: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()


def problems(network: NetworkFacts) -> list[Problem]:
    """Return the problems without their consequences; empty if all ranks can communicate."""
    for stage in (_before_the_roll, _who_is_there, _connections, _library):
        if found := list(stage(network)):
            return found
    return []


def _failures(network: NetworkFacts, *kinds: str) -> Iterator[tuple[RankFacts, NetworkFailure]]:
    return ((rank, one) for rank in network.ranks for one in rank.failures if not kinds or one.kind in kinds)


def _before_the_roll(network: NetworkFacts) -> Iterator[Problem]:
    """Yield the problems that keep a rank from using its device or from the rendezvous."""
    for rank, failure in _failures(network):
        if failure.step == "device":
            yield _device(rank, failure)
        elif failure.step == "rendezvous" and failure.kind in _AT_RENDEZVOUS:
            yield _at_rendezvous(network, rank, failure)
        elif failure.step in ("rendezvous", "roll call") and failure.kind not in ("claimed twice", "store gone"):
            yield Problem(
                f"{capitalized(rank.place)} could not join the other ranks at {network.address}: {_said(failure)}",
                _fixes(failure, SAME_EVERYWHERE),
                (rank.number,),
            )
    for number, who in network.claims.items():
        missing = f" No process is {_ranks(network.missing)}." if network.missing else ""
        yield Problem(
            f"{len(who)} processes claim to be rank {number} ({'; '.join(who)}).{missing}",
            _ONE_NUMBER_EACH,
            (number, *network.missing),
        )
    if not network.claims:
        for rank, failure in _failures(network, "claimed twice"):
            yield Problem(
                f"{capitalized(rank.place)} found its rank number taken: {failure.text} is also rank "
                f"{rank.number}.",
                _ONE_NUMBER_EACH,
                (rank.number,),
            )


_ONE_NUMBER_EACH = (
    "do not set RANK in the script: torchrun and srun give each process its own rank, but a script that exports "
    "RANK gives all processes the same one",
    "if you run one command per host, use a different --node-rank on each host",
)


def _device(rank: RankFacts, failure: NetworkFailure) -> Problem:
    if failure.kind == "too few GPUs":
        return Problem(
            f"{capitalized(rank.place)} is meant to use {rank.device}, but PyTorch sees "
            f"{count_of(int(failure.text), 'GPU')} there, numbered from 0.",
            (
                "start at most one process per GPU on each host: torchrun --nproc-per-node, srun "
                "--ntasks-per-node",
                "check that CUDA_VISIBLE_DEVICES lists all GPUs, and that the container can see them: --gpus all",
            ),
            (rank.number,),
        )
    device = rank.device or "its device"
    return Problem(
        f"{capitalized(rank.place)} cannot use {device}: {_said(failure)}",
        _fixes(failure, "run `nvidia-smi` and `diagnose gpu` on that host"),
        (rank.number,),
    )


def _at_rendezvous(network: NetworkFacts, rank: RankFacts, failure: NetworkFailure) -> Problem:
    host, _, port = network.address.rpartition(":")
    known = {
        "place": rank.place,
        "address": network.address,
        "spaced": network.address.replace(":", " "),
        "host": host,
        "rank_host": rank.host,
        "port": port,
        "limit": network.limit,
        "text": failure.text,
        "why": f" ({failure.text})" if failure.text else "",
        "by": f" over {rank.interface}" if rank.interface else "",
        "own": f" (it has {listed(rank.addresses, most=MAX_NAMED)})" if rank.addresses else "",
    }
    sentence, fixes = _AT_RENDEZVOUS[failure.kind]
    said = capitalized(sentence.format_map(known))
    return Problem(said, tuple(fix.format_map(known) for fix in fixes), (rank.number,))


_AT_RENDEZVOUS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "unresolved": (
        "{place} cannot find the host {host} named by MASTER_ADDR: the name does not resolve{why}.",
        (
            "set MASTER_ADDR to a hostname or IP address of rank 0's host that the other hosts can reach",
            "run `getent hosts NAME` on each host to see what the name resolves to",
        ),
    ),
    "refused": (
        "{place} tried to connect to {address} for {limit:g} s, and the connection was refused. Either rank 0 "
        "has not started, has exited or is listening on a different port, or MASTER_ADDR names the wrong host.",
        (
            "read the output of rank 0 to see whether it started, and with which MASTER_ADDR and MASTER_PORT",
            SAME_EVERYWHERE,
            "if there are several hosts, do not use 127.0.0.1 or localhost, which mean the local host",
        ),
    ),
    "no answer": (
        "{place} got no answer from {address}{by} within {limit:g} s. Either a firewall drops the packets, or no "
        "host has this address.",
        (
            "run `nc -vz {spaced}` on {rank_host} while rank 0 waits, and open the port on rank 0's host",
            SAME_EVERYWHERE,
        ),
    ),
    "elsewhere": (
        "{place} is configured to listen on {host}, which is not an address of its host{own}.",
        (
            "set MASTER_ADDR to the name or address of the host where rank 0 runs",
            "start rank 0 (torchrun --node-rank 0) on the host that MASTER_ADDR names",
        ),
    ),
    "port taken": (
        "{place} cannot listen on port {port}: another program on its host is already using it.",
        (
            "set MASTER_PORT to a free port, the same on every host",
            "run `ss -ltnp 'sport = :{port}'` to find the program, often an earlier run that is still waiting",
        ),
    ),
    "not a store": (
        "{place} reached {address}, but the program listening there is not rank 0 of this job (error: {text}).",
        (
            "set MASTER_PORT to a port that no other program uses, the same on every host",
            "read the output of rank 0: it may have exited because the port was taken",
        ),
    ),
    "no interface": (
        "{place} cannot use the configured network interface: {text}.",
        (
            "choose an interface that every host has (`ip -br addr` lists the interfaces)",
            "unset GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME: the libraries then choose an interface themselves",
        ),
    ),
}
"""Sentence and fixes, by the kind of the failure; see `_at_rendezvous` for the fields."""


def _who_is_there(network: NetworkFacts) -> Iterator[Problem]:
    """Yield ranks that did not arrive, or ended early."""
    ended = [rank for rank in network.ranks if rank.ending]
    for rank in ended:
        how = "ended" if rank.ending == "ended" else f"was killed by {rank.ending}"
        how = how.replace("was killed by exit code", "ended with exit code")
        yield Problem(
            f"{capitalized(rank.place)} {how} {_while(rank)}.",
            (
                f"look for the cause on {rank.host}: in dmesg (SIGKILL often means out of memory), in the "
                "scheduler's log and at the end of the rank's own output",
                "run `diagnose network --keep-logs FOLDER` to keep the output of each rank's libraries",
            ),
            (rank.number,),
        )
    missing = [number for number in network.missing if network.rank(number) is None]
    if missing:
        several = len(missing) > 1
        host = network.address.rpartition(":")[0]
        loopback = host == "localhost" or host.startswith("127.")
        own = (
            f" {host} means the local host: only ranks on the same host can connect."
            if loopback and network.launcher
            else ""
        )
        yield Problem(
            f"{len(missing)} of {network.world} ranks did not connect to {network.address} within "
            f"{network.limit:g} s: {_ranks(missing)}.{own}",
            (
                f"read the output of {_ranks(missing[:1])}: either it did not start, or its output says why it "
                "cannot connect",
                f"run `nc -vz {network.address.replace(':', ' ')}` on the "
                f"{'hosts' if several else 'host'} of {_ranks(missing)} while the other ranks wait",
                "set WORLD_SIZE to the number of processes started: --nnodes times --nproc-per-node for torchrun, "
                "--ntasks for srun",
            ),
            tuple(missing),
        )
    if not ended and not missing:
        gone = [rank for rank, _ in _failures(network, "store gone")]
        if gone and network.viewpoint != 0:
            yield Problem(
                f"Rank 0 no longer answers at {network.address}, {_while(gone[0])} on {gone[0].place}: it has "
                "ended, or the connection was cut.",
                ("read the output of rank 0, and look on its host for the cause",),
                (0,),
            )


def _connections(network: NetworkFacts) -> Iterator[Problem]:
    """Yield pairs that cannot connect by plain TCP."""
    failed = [(rank, one) for rank, one in _failures(network) if one.step == "connections"]
    if not failed:
        return
    pairs = tuple((rank.number, one.peer) for rank, one in failed if one.peer is not None)
    rank, first = failed[0]
    other = None if first.peer is None else network.rank(first.peer)
    more = f" The connection also fails from {_pairs(pairs[1:])}." if len(pairs) > 1 else ""
    how = {"refused": "refuses the connection", "no answer": f"did not answer within {network.limit:g} s"}
    place, _, why = first.text.partition(": ")
    ending = how.get(first.kind) or f"fails: {why}"
    by = f" over {rank.interface}" if rank.interface else ""
    yield Problem(
        f"{capitalized(rank.place)} cannot connect to {other.place if other else f'rank {first.peer}'}: {place} "
        f"{ending}{by}.{more}",
        ((SHARED_INTERFACE, ALL_PORTS) if first.kind == "refused" else (ALL_PORTS, SHARED_INTERFACE)),
        tuple(dict.fromkeys(number for pair in pairs for number in pair)),
        pairs,
    )


def _library(network: NetworkFacts) -> Iterator[Problem]:
    """Yield the first failure of the communication library, with its message."""
    with_card = [rank.number for rank in network.ranks if rank.device.startswith("cuda")]
    without = [rank.number for rank in network.ranks if rank.device == "cpu"]
    if with_card and without:
        yield Problem(
            f"{capitalized(_ranks(without))} {'see' if len(without) > 1 else 'sees'} no GPU, unlike "
            f"{_ranks(with_card)}: NCCL needs a GPU on every rank.",
            (
                f"check nvidia-smi and CUDA_VISIBLE_DEVICES for {_ranks(without)}, and request GPUs when you "
                "start a container or a job: docker run --gpus all, srun --gpus-per-task=1",
            ),
            tuple(without),
        )
    failed = [(rank, one) for rank, one in _failures(network) if one.kind != "store gone"]
    failed.sort(key=lambda pair: pair[1].known is None)  # failures with a known reason first
    if not failed:
        return
    rank, first = failed[0]
    pairs = tuple((one.number, failure.peer) for one, failure in failed if failure.peer is not None)
    yield Problem(
        f"{_subject(network, rank, first)}{_loopback(network)}",
        (*_fixes(first), *_OF_THE_LIBRARY.get(network.backend, ())),
        tuple(dict.fromkeys(one.number for one, _ in failed)),
        pairs,
    )


_OF_THE_LIBRARY = {
    "gloo": (
        "set GLOO_SOCKET_IFNAME to an interface that all hosts have, such as eth0 (`ip -br addr` lists the "
        "interfaces)",
    ),
    "nccl": (
        "set NCCL_SOCKET_IFNAME to an interface that all hosts have, such as eth0; without InfiniBand, set "
        "NCCL_IB_DISABLE=1",
        "set NCCL_P2P_DISABLE=1, then NCCL_SHM_DISABLE=1, to find the faulty path between the GPUs of a host",
        "run `diagnose network --keep-logs FOLDER` to keep each rank's NCCL log",
    ),
}


def _subject(network: NetworkFacts, rank: RankFacts, failure: NetworkFailure) -> str:
    with_peer = "" if failure.peer is None else f" with rank {failure.peer}"
    library = {"nccl": "NCCL", "gloo": "gloo"}.get(network.backend, "the communication library")
    what = "creating the process group" if failure.step == "group" else f"the {failure.step}"
    if failure.kind == "wrong sum":
        return (
            f"The {failure.step}{with_peer} with {library} gives a wrong result on {rank.place}: {failure.text}."
        )
    if failure.kind == "stuck":
        return (
            f"{capitalized(rank.place)} did not finish {what}{with_peer} with {library} within "
            f"{failure.text}, although all ranks can connect to each other over TCP."
        )
    return (
        f"All ranks can connect to each other over TCP, but {what}{with_peer} with {library} failed on "
        f"{rank.place}: {_said(failure)}"
    )


def _loopback(network: NetworkFacts) -> str:
    """Report that gloo offers an address that also exists on other hosts."""
    hosts = {rank.host for rank in network.ranks}
    wrong = [rank.number for rank in network.ranks if rank.resolved.startswith("127.")]
    first = next((rank.resolved for rank in network.ranks if rank.resolved.startswith("127.")), "")
    if network.backend != "gloo" or len(hosts) < 2 or not wrong:
        return ""
    return (
        f" On {_ranks(wrong)}, the host's own name resolves to {first}, and gloo passes that address to the other "
        "hosts, which then connect to themselves."
    )


def _said(failure: NetworkFailure) -> str:
    text = f"{failure.text.rstrip('.')}." if failure.text else "no reason was given."
    return text if failure.known is None else f"{text} {failure.known.cause}"


def _fixes(failure: NetworkFailure, *others: str) -> tuple[str, ...]:
    return (*(() if failure.known is None else failure.known.fixes), *others)


def _while(rank: RankFacts) -> str:
    if not rank.begun:
        return "before it began"
    if rank.begun in rank.passed:
        return f"after {_step(rank.begun)}"
    return f"during {_step(rank.begun)}"


def _step(name: str) -> str:
    return {"device": "the first allocation", "group": "creating the group"}.get(name, f"the {name}")


def _ranks(numbers: tuple[int, ...] | list[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {listed(numbers, most=MAX_NAMED)}"


def _pairs(pairs: tuple[tuple[int, int], ...]) -> str:
    return listed((f"rank {one} to rank {other}" for one, other in pairs), most=MAX_NAMED)
