"""The queue of the device and the one thread that works it off."""

from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from bugs.lab.device.failure import Failure, failure_of
from bugs.lab.device.timeline import Operation, Recorder, Wait

DEPTH: Final = 1024  # operations that can be queued before the host must wait; CUDA's own bound is about this


class _Work(NamedTuple):
    """One entry of the queue; without `run` it only marks a place in it."""

    name: str
    launched: float
    run: Callable[..., None] | None
    arguments: Sequence[Any]
    done: threading.Event | None


class KernelError(Exception):
    """What an operation raises when its kernel did; carries the real tensors that the kernel was given."""

    def __init__(self, error: Exception, arguments: Sequence[Any]) -> None:
        self.error, self.arguments = error, arguments


class Stream:
    """Runs operations in the order of their launch, in a thread of its own, and is lost when one of them fails.

    The host learns of a failure where it waits, and not before, so that a script fails at the same place every
    time. From then on every call fails.
    """

    def __init__(self, recorder: Recorder, prepare: Callable[[], None]) -> None:
        """Start the worker.

        Args:
            recorder: takes down what is run and what is waited for.
            prepare: called once in the worker's thread, before any operation.
        """
        self.blocking = False  # whether each launch waits until it has run, as under CUDA_LAUNCH_BLOCKING=1
        self._recorder = recorder
        self._prepare = prepare
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(DEPTH)
        self._failure: Failure | None = None
        self._noticed = self._closing = False
        self._process = os.getpid()
        self._worker = threading.Thread(target=self._work, name="simulated device", daemon=True)
        self._worker.start()
        atexit.register(self.close)  # a daemon thread must not be within an operation when the interpreter goes

    def launch(self, name: str, run: Callable[..., None], *arguments: Any) -> None:
        """Queue `run(*arguments)` and return at once, or after it has run if launches block.

        Raises:
            torch.AcceleratorError: the device is lost and the host knows, or launches block and this one failed.
            RuntimeError: in a process that was forked from the one that has the device, or at the end of the
                interpreter.
        """
        self.check()
        if not self._room.acquire(blocking=False):
            started = time.perf_counter()
            self._room.acquire()
            self._recorder.waited(Wait("full queue", started, time.perf_counter()))
        done = threading.Event() if self.blocking else None
        self._queue.put(_Work(name, time.perf_counter(), run, arguments, done))
        if done is not None:
            self._wait_for(done, "blocking launch")

    def wait(self, reason: str) -> None:
        """Wait until everything launched so far has run.

        Raises:
            torch.AcceleratorError: the device is lost.
            RuntimeError: as `launch`.
        """
        self.check()
        done = threading.Event()
        self._queue.put(_Work(reason, 0.0, None, (), done))
        self._wait_for(done, reason)

    def check(self) -> None:
        """Raise what `launch` would raise for the state that the device is in."""
        if self._noticed and self._failure is not None:
            raise self._failure.exception()
        if self.foreign:
            raise RuntimeError(
                "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use "
                "the 'spawn' start method (simulated device)"
            )
        if self._closing:  # nobody would answer
            raise RuntimeError("CUDA error: driver shutting down (simulated device)")

    @property
    def pending(self) -> int:
        """How many entries wait in the queue; the one that runs is not among them."""
        return self._queue.qsize()

    @property
    def lost(self) -> bool:
        """Whether an operation has failed and the host has seen it."""
        return self._noticed

    @property
    def foreign(self) -> bool:
        """Whether this process is a fork of the one that has the device; the worker did not come along."""
        return os.getpid() != self._process

    def close(self) -> None:
        """Drop what is queued and end the worker, after the operation that it is in."""
        self._closing = True
        if not self.foreign:
            self._queue.put(None)
            self._worker.join()

    def _wait_for(self, done: threading.Event, reason: str) -> None:
        started = time.perf_counter()
        try:
            done.wait()
        finally:  # Ctrl-C ends a wait, too
            self._recorder.waited(Wait(reason, started, time.perf_counter()))
        if self._failure is not None:
            self._noticed = True
            self.check()

    def _work(self) -> None:
        self._prepare()
        while (work := self._queue.get()) is not None:
            if work.run is not None:
                if self._failure is None and not self._closing:
                    self._run(work.name, work.launched, work.run, work.arguments)
                self._room.release()
            done, work = work.done, None  # what the operation held is free before the host goes on
            if done is not None:
                done.set()

    def _run(self, name: str, launched: float, run: Callable[..., None], arguments: Sequence[Any]) -> None:
        started = time.perf_counter()
        try:
            run(*arguments)
        except KernelError as refused:
            self._fail(failure_of(name, refused.error, refused.arguments))
        except BaseException as error:  # whatever it is, the worker must live to answer those who wait
            self._fail(failure_of(name, error, ()))
        self._recorder.ran(Operation(name, launched, started, time.perf_counter()))

    def _fail(self, failure: Failure) -> None:
        print(failure.said, file=sys.stderr, flush=True)
        self._failure = failure
