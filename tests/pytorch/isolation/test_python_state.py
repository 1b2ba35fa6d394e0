"""`python_state_kept`: what code of the user's did to Python objects is undone."""

import collections
import itertools
import sys
import types

import numpy as np
import pytest
import torch
from torch import nn

from diagnostics.collectors.isolation.python_state import CannotRestore, python_state_kept

CALLS = 0
COUNTS = collections.defaultdict(int)
HISTORY = []
NUMBERS = itertools.count()
SETTINGS = types.SimpleNamespace(step=0)


class Slotted:
    __slots__ = ("calls",)

    def __init__(self):
        self.calls = 0


class Counter:
    total = 0

    def __init__(self):
        self.calls, self.numbers, self.nested = 0, itertools.count(), {"train": collections.defaultdict(list)}
        self.latest, self.seen = collections.deque(maxlen=2), set()
        self.array, self.tensor = np.zeros(3), torch.zeros(2)
        self.slotted, self.ordered = Slotted(), collections.OrderedDict(a=1, b=2)
        self.bytes = bytearray(b"a")

    def count(self, row):
        global CALLS
        CALLS += 1
        COUNTS[row] += 1
        HISTORY.append(row)
        next(NUMBERS)
        SETTINGS.step += 1
        Counter.total += 1
        type(self).added = row
        self.calls += 1
        next(self.numbers)
        self.nested["train"]["rows"].append(row)
        self.latest.append(row)
        self.seen.add(row)
        self.array[0] += 1
        self.tensor += 1
        self.slotted.calls += 1
        self.ordered.move_to_end("a")
        self.bytes += b"b"
        self.new = row

    def state(self):
        return (
            CALLS, dict(COUNTS), list(HISTORY), repr(NUMBERS), vars(SETTINGS).copy(), Counter.total,
            "added" in vars(Counter), self.calls, repr(self.numbers), repr(self.nested), list(self.latest),
            sorted(self.seen), self.array.tolist(), self.tensor.tolist(), self.slotted.calls, list(self.ordered),
            bytes(self.bytes), sorted(vars(self)),
        )  # fmt: skip


def test_everything_that_a_counter_may_count_in_is_put_back():
    counter = Counter()
    counter.count(7)
    before = counter.state()
    kept = counter.nested["train"]["rows"]
    with python_state_kept(counter):
        for row in range(3):
            counter.count(row)
    assert counter.state() == before
    assert counter.nested["train"]["rows"] is kept
    assert next(counter.numbers) == 1


def test_what_was_not_changed_is_the_very_same():
    counter = Counter()
    counter.count(1)
    inner = counter.nested, counter.tensor, counter.slotted
    version = counter.tensor._version
    with python_state_kept(counter):
        pass
    assert all(
        one is other for one, other in zip(inner, (counter.nested, counter.tensor, counter.slotted), strict=True)
    )
    assert counter.tensor._version == version


def test_a_variable_of_a_closure_and_a_default():
    calls = 0

    def count(seen=[]):  # noqa: B006
        nonlocal calls
        calls += 1
        seen.append(calls)
        count.latest = calls
        return seen

    with python_state_kept(count):
        count()
    assert (calls, count.__defaults__, vars(count)) == (0, ([],), {})


def test_a_module_that_the_script_counts_in(tmp_path, monkeypatch):
    (tmp_path / "tally_of_the_script.py").write_text("calls = 0\nrows = []\n")
    monkeypatch.syspath_prepend(tmp_path)
    import tally_of_the_script as tally

    code = "def count():\n    tally.calls += 1\n    tally.rows.append(1)\n"
    script = {"tally": tally}
    exec(code, script)
    with python_state_kept(script["count"]):
        script["count"]()
    assert (tally.calls, tally.rows) == (0, [])


def test_the_attributes_of_a_model():
    model = nn.Sequential(nn.Linear(2, 2))
    model.calls, model.seen = 0, []
    weight = model[0].weight
    with python_state_kept(model):
        model.calls += 1
        model.seen.append(1)
        model.extra = nn.Linear(1, 1)
    assert (model.calls, model.seen, list(model._modules)) == (0, [], ["0"])
    assert model[0].weight is weight


@pytest.mark.parametrize("moving", [iter([1, 2]), (number for number in range(3)), zip([1], [2], strict=True)])
def test_what_moves_on_is_refused(moving):
    holder = types.SimpleNamespace(rows=[moving])
    with pytest.raises(CannotRestore, match=r"moves on when it is used"), python_state_kept(holder):
        pytest.fail("was entered")


def test_an_open_file_is_refused_unless_its_owner_is_not_called(tmp_path):
    with (tmp_path / "log").open("w") as file:
        holder = types.SimpleNamespace(file=file)
        with pytest.raises(CannotRestore), python_state_kept(holder):
            pytest.fail("was entered")
        with python_state_kept(types.SimpleNamespace(callback=holder), uncalled=[holder]):
            pass


def test_a_tracker_of_metrics_is_refused(tmp_path, monkeypatch):
    (tmp_path / "trackio.py").write_text("def log(metrics):\n    raise AssertionError\n\nclass Run:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "trackio", raising=False)
    script = {}
    exec("import trackio\ndef loss():\n    trackio.log({})\n", script)
    monkeypatch.delitem(sys.modules, "trackio")
    for holder in (script["loss"], types.SimpleNamespace(run=script["trackio"].Run())):
        with pytest.raises(CannotRestore, match="to which it may send metrics"), python_state_kept(holder):
            pytest.fail("was entered")
        with python_state_kept(uncalled=[holder]):  # as a callback's is
            pass


def test_numbers_go_on_where_they_were_even_if_something_is_refused():
    holder = types.SimpleNamespace(numbers=itertools.count(5), inner=types.SimpleNamespace(rows=iter([])))
    numbers = holder.numbers
    with pytest.raises(CannotRestore), python_state_kept(holder):
        pytest.fail("was entered")
    assert holder.numbers is numbers


def test_a_long_list_is_put_back_too():
    rows = list(range(100_000))
    with python_state_kept(rows):
        rows.reverse()
        rows.append(1)
    assert rows == list(range(100_000))
