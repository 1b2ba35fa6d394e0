"""Reads rank and meeting place from the variables that launchers set, and the addresses of this host."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from diagnostics.errors import InvalidInput

DEFAULT_PORT = 29500  # PyTorch's own
SLURM_PORTS, SLURM_FIRST_PORT = 20_000, 30_000  # jobs of one host are kept apart by their number
_ADDRESS_OF = 0x8915  # SIOCGIFADDR of Linux


@dataclass(frozen=True)
class Placement:
    """The place of this process in its job.

    Attributes:
        launcher: ``torchrun`` (or whatever sets the same variables), ``srun``, ``mpirun``.
        rank: from 0.
        world: number of ranks.
        local_rank: number on its host, from 0, which is that of its GPU.
        host: where rank 0 listens: a name or an address.
        port: on that host.
        run: tells attempts with the same meeting place apart: a number of restarts.
        hosted: whether the launcher itself listens there, as torchrun does.
    """

    launcher: str
    rank: int
    world: int
    local_rank: int
    host: str
    port: int
    run: str = ""
    hosted: bool = False


def placement(environment: Mapping[str, str]) -> Placement | None:
    """Read this process's place; None if no launcher has started it, or one process alone.

    Raises:
        InvalidInput: the variables contradict each other, or one is missing.
    """
    if "RANK" in environment or "WORLD_SIZE" in environment:
        return _torchrun(environment)
    # SLURM_PROCID alone is also set in the batch script itself, which is no rank.
    if int(environment.get("SLURM_STEP_NUM_TASKS") or 1) > 1 and "SLURM_PROCID" in environment:
        return _slurm(environment)
    for rank, world, local in _MPI:
        if int(environment.get(world) or 1) > 1 and rank in environment:
            return _mpi(environment, rank, world, local)
    return None


_MPI = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)


def _torchrun(environment: Mapping[str, str]) -> Placement | None:
    needed = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if lacking := [name for name in needed if not environment.get(name)]:
        given = ", ".join(f"{name}={environment[name]}" for name in needed if environment.get(name))
        raise InvalidInput(
            f"diagnose network was given {given}, and not {' and '.join(lacking)}. A launcher sets all of "
            "them: torchrun --nproc-per-node 2 -m diagnostics network. Or unset them, to try 2 processes here."
        )
    rank, world = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
    if not 0 <= rank < world:
        raise InvalidInput(
            f"RANK is {rank} and WORLD_SIZE is {world}. Ranks are counted from 0 to WORLD_SIZE - 1: correct RANK "
            "in what starts this process."
        )
    return Placement(
        "torchrun",
        rank,
        world,
        _number(environment, "LOCAL_RANK") if environment.get("LOCAL_RANK") else 0,
        environment["MASTER_ADDR"],
        _number(environment, "MASTER_PORT"),
        environment.get("TORCHELASTIC_RESTART_COUNT", ""),
        environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
    )


def _slurm(environment: Mapping[str, str]) -> Placement:
    job = environment.get("SLURM_JOB_ID", "0")
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "localhost")
    port = SLURM_FIRST_PORT + int(job) % SLURM_PORTS if job.isdigit() else DEFAULT_PORT
    return Placement(
        "srun",
        _number(environment, "SLURM_PROCID"),
        _number(environment, "SLURM_STEP_NUM_TASKS"),
        _number(environment, "SLURM_LOCALID") if environment.get("SLURM_LOCALID") else 0,
        environment.get("MASTER_ADDR") or first_node(nodes),
        _number(environment, "MASTER_PORT") if environment.get("MASTER_PORT") else port,
        environment.get("SLURM_STEP_ID", ""),
    )


def first_node(nodes: str) -> str:
    """Return the first host of SLURM's list: ``gpu[003-007,011],login1`` gives ``gpu003``."""
    found = re.match(r"([^,\[]+)(?:\[([^\]]*)\])?([^,\[]*)", nodes.strip())
    if found is None:
        return nodes
    head, numbers, tail = found[1], found[2], found[3]
    return head + re.split(r"[-,]", numbers)[0] + tail if numbers else head


def _mpi(environment: Mapping[str, str], rank: str, world: str, local: str) -> Placement:
    alone = environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environment[world]
    host = environment.get("MASTER_ADDR") or ("127.0.0.1" if alone else "")
    if not host:
        raise InvalidInput(
            f"mpirun set {rank}={environment[rank]} and {world}={environment[world]}, and no variable says where "
            "rank 0 runs. Pass it: mpirun -x MASTER_ADDR=$(hostname) -x MASTER_PORT=29500 ..."
        )
    return Placement(
        "mpirun",
        _number(environment, rank),
        _number(environment, world),
        _number(environment, local) if environment.get(local) else 0,
        host,
        _number(environment, "MASTER_PORT") if environment.get("MASTER_PORT") else DEFAULT_PORT,
    )


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise InvalidInput(f"{name} is {environment[name]!r}, which is not a whole number.") from None


def interfaces() -> dict[str, str]:
    """Return the IPv4 address of each interface that has one; empty where the system is not Linux."""
    found: dict[str, str] = {}
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):
                    packed = fcntl.ioctl(asking, _ADDRESS_OF, struct.pack("256s", name.encode()[:15]))
                    found[name] = socket.inet_ntoa(packed[20:24])
    return found


def address_towards(host: str, port: int) -> str:
    """Return the own address from which packets to a host leave; empty if there is no way to it. Sends nothing."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((host, port or 9))
        return str(asking.getsockname()[0])
    return ""


def own_name_resolved() -> str:
    """Return the address that this host's own name resolves to; empty if it does not."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def is_here(host: str) -> bool | None:
    """Whether an address belongs to this host; None if the name does not resolve."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return None
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trying:
            trying.bind((address, 0))
    except OSError:
        return False
    return True


def chosen(named: str, available: Mapping[str, str]) -> list[str]:
    """Return the interfaces that NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names.

    Args:
        named: names or prefixes with commas; behind ``=`` names only, behind ``^`` those not to be taken.
        available: interfaces of this host.
    """
    found = re.match(r"(\^?=?)(.*)", named)
    signs, listed = (found[1], found[2]) if found is not None else ("", named)
    wanted = [part.strip() for part in listed.split(",") if part.strip()]

    def fits(name: str) -> bool:
        return any(name == part if "=" in signs else name.startswith(part) for part in wanted)

    return [name for name in available if fits(name) is not ("^" in signs)]


def speed_of(interface: str) -> float | None:
    """Return what a link is made for, in bytes per second; None if the system does not say, as of a loopback."""
    try:
        megabits = int((Path("/sys/class/net") / interface / "speed").read_text())
    except (OSError, ValueError):
        return None
    return megabits * 1e6 / 8 if megabits > 0 else None
