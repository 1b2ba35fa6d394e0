"""Recognises failures outside of the training code: the installation, worker processes, launchers, ranks."""

from __future__ import annotations

import re
from collections.abc import Callable

from diagnostics.facts.crash import Symptom
from diagnostics.facts.crash.processes import (
    CollectiveTimeoutCrash,
    InstallationCrash,
    LauncherTail,
    UnusedParametersCrash,
    WorkerCrash,
)

from .frames import Crash

_INSTALLATION = (
    ("no kernels", r"no kernel image is available for execution on the device|CUDA_ERROR_NO_BINARY_FOR_GPU"),
    ("old driver", r"CUDA driver version is insufficient for CUDA runtime version"),
    ("old driver", r"NVIDIA driver on your system is too old(?: \(found version \d+\))?"),
    ("old driver", r"the provided PTX was compiled with an unsupported toolchain"),
    ("no driver", r"Found no NVIDIA driver on your system"),
    ("cpu build", r"Torch not compiled with CUDA enabled|PyTorch was not compiled with CUDA"),
    (
        "cudnn",
        r"cuDNN version incompatibility: PyTorch was compiled\s+against \([\d, ]+\) but found runtime version",
    ),
    ("cudnn", r"Loaded runtime CuDNN library: \S+ but source was compiled with: \S+"),
    (
        "gpu checkpoint",
        r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False",
    ),
    (
        "gpu checkpoint",
        r"Attempting to deserialize object on CUDA device \d+ but torch\.cuda\.device_count\(\) is \d+",
    ),
    ("numpy", r"numpy\.(?:ndarray|dtype|ufunc) size changed, may indicate binary incompatibility"),
    ("numpy", r"A module that was compiled using NumPy 1\.x cannot be run in|\bNumpy is not available\b"),
    ("binary", r"operator torchvision::nms does not exist|Couldn't load custom C\+\+ ops"),
    ("binary", r"undefined symbol: _Z\w+|cannot open shared object file: No such file or directory"),
    ("binary", r"DLL load failed while importing \w+|version `(?:GLIBC|CXXABI|GLIBCXX)_[\d.]+' not found"),
    ("binary", r"The detected CUDA version \([\d.]+\) mismatches the version that was used to compile\s+PyTorch"),
    ("missing package", r"Using the `Trainer` with `PyTorch` requires `accelerate[^`]*`"),
    ("missing package", r"requires the (\S+) library but it was not found in your environment"),
)


def _installation(crash: Crash) -> InstallationCrash | None:
    for kind, pattern in _INSTALLATION:
        if found := re.search(pattern, crash.facts.message):
            return InstallationCrash(kind, " ".join(found[0].split()))  # type: ignore[arg-type]
    return None


_UNPICKLABLE = re.compile(
    r"Can't (?:pickle|get) local object ['\"]?(?P<local>[\w.<>]+)|Can't pickle "
    r"<(?P<function>[^>]+(?:<\w+>)?[^>]*)>"
    r"|cannot pickle '(?P<type>[\w.]+)' object|Can't get attribute '(?P<attribute>\w+)' on "
    r"<module '__(?:mp_)?main__'"
)
_PROCESSES = ("multiprocessing", "torch/utils/data/dataloader.py", "popen_", "spawn.py")
_WORKERS = (
    ("main guard", r"start a new process before the\s+current process has finished its bootstrapping phase"),
    ("cuda fork", r"Cannot re-initialize CUDA in forked subprocess"),
    ("files", r"received \d+ items of ancdata|Too many open files"),
    ("signal", r"DataLoader worker \(pid\S* [\d, ]+\) is killed by signal: (?P<what>[\w ]+)"),
    ("exited", r"DataLoader worker \(pid\S* [\d, ]+\) exited unexpectedly"),
)


def _worker(crash: Crash) -> WorkerCrash | None:
    message = crash.facts.message
    for kind, pattern in _WORKERS:
        if found := re.search(pattern, message):
            return WorkerCrash(kind, found.groupdict().get("what"))  # type: ignore[arg-type]
    if _starts_process(crash):
        # A child that was spawned says no more than EOFError; why its parent could not send it is in the log.
        ended = crash.facts.exception == "EOFError" and "Ran out of input" in message
        found = _UNPICKLABLE.search(message) or (_UNPICKLABLE.search(crash.log) if ended else None)
        if found or ended:
            return WorkerCrash("pickle", None if found is None else next(filter(None, found.groups()), None))
    return None


def _starts_process(crash: Crash) -> bool:
    frames = crash.facts.frames
    return not frames or any(part in frame.file.replace("\\", "/") for frame in frames for part in _PROCESSES)


def _launcher(crash: Crash) -> LauncherTail | None:
    facts = crash.facts
    text = f"{facts.message}\n{crash.log}"
    if facts.exception == "ChildFailedError":
        rank = re.search(r"^\s*rank\s*: (\d+)", text, re.MULTILINE)
        code = re.search(r"exitcode\s*: (-?\d+)", text)
        return LauncherTail("torchrun", _number(rank), _number(code))
    if facts.exception == "CalledProcessError" and any("accelerate" in frame.file for frame in facts.frames):
        return LauncherTail("accelerate", None, _number(re.search(r"non-zero exit status (\d+)", facts.message)))
    if facts.exception == "ProcessExitedException":
        code = re.search(
            r"process (?P<rank>\d+) terminated with (?:exit code (?P<code>\d+)|signal)", facts.message
        )
        return LauncherTail("torch.multiprocessing", _number(code, "rank"), _number(code, "code"))
    return None


def _number(found: re.Match[str] | None, group: int | str = 1) -> int | None:
    return None if found is None or found[group] is None else int(found[group])


WATCHDOG = re.compile(
    r"(?:\[Rank (?P<rank>\d+)\] )?(?:[Ww]atchdog caught collective operation timeout|Some NCCL "
    r"operations have failed "
    r"or timed out)[^\n]*"
)
_RENDEZVOUS = re.compile(
    r"[Tt]imed? ?out (?:after (?P<seconds>\d+) seconds )?waiting for clients\. "
    r"(?P<came>\d+)/(?P<of>\d+) clients joined"
)
_GLOO = re.compile(r"Timed out waiting (?P<ms>\d+)ms for (?:recv|send) operation to complete")


def _collective_timeout(crash: Crash) -> CollectiveTimeoutCrash | None:
    message = crash.facts.message
    if found := _RENDEZVOUS.search(message):
        seconds = _number(found, "seconds")
        return CollectiveTimeoutCrash(
            seconds=None if seconds is None else float(seconds), joined=(int(found["came"]), int(found["of"]))
        )
    if found := _GLOO.search(message):
        return CollectiveTimeoutCrash(seconds=int(found["ms"]) / 1000)
    if found := WATCHDOG.search(message):
        call = re.search(r"OpType=(\w+)", found[0])
        limit = _number(re.search(r"Timeout\(ms\)=(\d+)", found[0]))
        return CollectiveTimeoutCrash(
            rank=_number(found, "rank"),
            operation=None if call is None else call[1],
            number=_number(re.search(r"SeqNum=(\d+)", found[0])),
            seconds=None if limit is None else limit / 1000,
        )
    return None


def _unused_in_ddp(crash: Crash) -> UnusedParametersCrash | None:
    message = crash.facts.message
    if "Expected to have finished reduction in the prior iteration" not in message:
        return None
    named = re.search(r"did not receive grad for rank (\d+): ([\w., ]+)", message)
    by_number = re.search(r"Parameter indices which did not receive grad for rank (\d+): ([\d ]+)", message)
    found = named if named is not None and "," in named[2] else by_number or named
    if found is None:
        return UnusedParametersCrash()
    return UnusedParametersCrash(int(found[1]), tuple(re.findall(r"[\w.]*\w", found[2])))


RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (
    _installation,
    _worker,
    _collective_timeout,
    _launcher,
    _unused_in_ddp,
)
