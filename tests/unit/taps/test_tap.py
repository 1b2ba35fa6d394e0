"""A function is patched once for all subscribers, who are told in order, and restored after the last."""

import sys
from types import ModuleType

import pytest

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.taps.tap import OutermostTap, Tap, TrainTap, subscribe


class Optimizer:
    def step(self, size, *, scale=1):
        if size < 0:
            raise ValueError("no such size")
        return size * scale if size < 10 else self.step(size - 10, scale=scale)


PLAIN = Optimizer.step


@pytest.fixture
def told():
    """Return a list, and take off every patch at the end."""
    yield []
    Optimizer.step = PLAIN


def note(told, name):
    return lambda *given, **options: told.append((name, *given[-1:], *options.values()))


def test_subscribers_are_told_in_the_order_of_their_subscriptions(told):
    tap = Tap("step", Optimizer)
    for event, name in ((tap.after, "after"), (tap.before, "first"), (tap.ended, "ended"), (tap.before, "second")):
        event.subscribe(note(told, name))
    assert Optimizer().step(3, scale=2) == 6
    assert told == [("first", 3, 2), ("second", 3, 2), ("ended", 3, 2), ("after", 3, 2)]


def test_after_has_the_result_first(told):
    Tap("step", Optimizer).after.subscribe(lambda *given, **_: told.append(given[0]))
    Optimizer().step(3, scale=2)
    assert told == [6]


def test_a_call_that_raises_has_ended_and_has_no_result(told):
    tap = Tap("step", Optimizer)
    tap.ended.subscribe(note(told, "ended"))
    tap.after.subscribe(note(told, "after"))
    with pytest.raises(ValueError, match="no such size"):
        Optimizer().step(-1)
    assert told == [("ended", -1)]


def test_function_is_patched_once_and_restored_after_the_last_subscriber(told):
    tap = Tap("step", Optimizer)
    first = tap.before.subscribe(note(told, "first"))
    patched = Optimizer.step
    second = tap.after.subscribe(note(told, "second"))
    assert patched is Optimizer.step
    first()
    first()  # does nothing
    assert patched is Optimizer.step
    second()
    assert Optimizer.step is PLAIN


def test_same_work_can_subscribe_twice(told):
    tap, work = Tap("step", Optimizer), note(told, "told")
    end, _ = tap.before.subscribe(work), tap.before.subscribe(work)
    end()
    Optimizer().step(1)
    assert told == [("told", 1)]


def test_what_was_patched_over_tells_nobody_twice(told):
    """The patch of the first subscriber cannot be taken off: another one is over it."""
    tap = Tap("step", Optimizer)
    end = tap.before.subscribe(note(told, "first"))
    ours = Optimizer.step
    Optimizer.step = lambda optimizer, size: ours(optimizer, size)
    end()
    tap.before.subscribe(note(told, "second"))
    assert Optimizer().step(1) == 1
    assert told == [("second", 1)]


def test_own_runs_of_the_library_are_no_events(told):
    Tap("step", Optimizer).before.subscribe(note(told, "told"))
    with own_run():
        assert Optimizer().step(1) == 1
    assert told == []


def test_a_subscriber_may_leave_while_it_is_told(told):
    tap = Tap("step", Optimizer)
    ends = []

    def once(*_):
        ends.pop()()
        told.append("once")

    ends.append(tap.before.subscribe(once))
    Optimizer().step(1)
    Optimizer().step(1)
    assert told == ["once"]
    assert Optimizer.step is PLAIN


def test_several_events_are_run_by_one_guard(told):
    tap = Tap("step", Optimizer)
    end = subscribe(lambda work, *given: told.append(work(*given)), (tap.before, max), (tap.after, min))
    tap.before.tell(1, 2)
    tap.after.tell(1, 2)
    assert told == [2, 1]
    end()
    assert Optimizer.step is PLAIN


def test_value_is_exchanged_by_each_subscriber_in_turn(told):
    event = Tap("step", Optimizer).after
    assert event.exchange(1, "given") == 1
    event.subscribe(lambda _, value: value + 1)
    event.subscribe(lambda _, value: value * 10)
    assert event.exchange(1, "given") == 20


def test_only_outermost_calls_are_events(told):
    OutermostTap("step", Optimizer).before.subscribe(note(told, "told"))
    assert Optimizer().step(35) == 5
    assert Optimizer().step(4) == 4
    assert told == [("told", 35), ("told", 4)]


def test_arguments_of_a_training_may_be_exchanged_and_contexts_left_at_its_end(told):
    def begins(call, plain):
        assert plain is PLAIN
        call.options = {"scale": 3}
        call.until_it_ends.callback(told.append, "ended")

    TrainTap("step", Optimizer).before.subscribe(begins)
    assert Optimizer().step(2) == 6
    with pytest.raises(ValueError, match="no such size"):
        Optimizer().step(-1)
    assert told == ["ended", "ended"]


def test_owner_is_imported_by_its_name_and_left_out_if_there_is_none(told, monkeypatch):
    module = ModuleType("made_for_a_test")
    module.Optimizer = Optimizer
    monkeypatch.setitem(sys.modules, "made_for_a_test", module)
    names = "made_for_a_test:Optimizer", "made_for_a_test:Missing", "missing.module:Optimizer"
    Tap("step", *names).before.subscribe(note(told, "told"))
    Tap("missing", *names).before.subscribe(note(told, "never"))
    Optimizer().step(1)
    assert told == [("told", 1)]
