from diagnostics.collectors.isolation.guard import FaultGuard, own_seconds
from diagnostics.collectors.shared import step_clock
from diagnostics.collectors.shared.step_clock import FEWEST, WARM_UP, StepClock


class Hours:
    """Time that passes only when told."""

    def __init__(self, monkeypatch):
        self.now = self.own = 0.0
        monkeypatch.setattr(step_clock.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(step_clock, "own_seconds", lambda: self.own)

    def spend(self, clock, part, seconds, own=0.0):
        clock.begin(part)
        self.now += seconds
        self.own += own


def test_shares_are_those_of_the_parts_without_our_own_work(monkeypatch):
    hours, clock = Hours(monkeypatch), StepClock()
    for _ in range(WARM_UP + FEWEST):
        hours.spend(clock, "loader", 6.0)
        clock.drew()
        hours.spend(clock, "forward", 3.0, own=1.0)
        hours.spend(clock, "backward", 2.0)
        clock.step()
    times = clock.times()
    assert (times.steps, times.skipped, times.batches) == (FEWEST, WARM_UP, FEWEST)
    assert {part: seconds / times.steps for part, seconds in times.seconds.items()} == {
        "loader": 6.0, "forward": 2.0, "backward": 2.0, "diagnostics": 1.0,
    }  # fmt: skip
    assert round(times.share("loader"), 3) == round(6 / 11, 3)


def test_what_is_dropped_or_comes_first_does_not_count(monkeypatch):
    hours, clock = Hours(monkeypatch), StepClock()
    for number in range(WARM_UP + FEWEST):
        hours.spend(clock, "forward", 100.0)
        clock.drop()
        hours.now += 100.0  # no part lasts
        hours.spend(clock, "forward", 100.0 if number < WARM_UP else 1.0)
        clock.step()
    assert clock.times().seconds == {"forward": float(FEWEST)}


def test_silent_about_few_steps_and_about_short_ones(monkeypatch):
    hours, clock = Hours(monkeypatch), StepClock()
    for _ in range(WARM_UP + FEWEST - 1):
        hours.spend(clock, "forward", 1.0)
        clock.step()
    assert clock.times() is None
    short = StepClock()
    for _ in range(WARM_UP + FEWEST):
        hours.spend(short, "forward", 0.01)
        short.step()
    assert short.times() is None


def test_work_within_work_of_this_library_counts_once():
    guard, before = FaultGuard(), own_seconds()

    def work():
        guard.attempt(sum, range(100_000))
        guard.run("part", lambda: 1 / 0)  # a fault ends it, too

    begun = step_clock.time.perf_counter()
    guard.attempt(work)
    assert 0 < own_seconds() - before <= step_clock.time.perf_counter() - begun
