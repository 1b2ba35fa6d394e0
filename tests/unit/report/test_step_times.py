"""The time of a step in each rendering, and the advice about it."""

import json

import pytest

from diagnostics import Report
from diagnostics.facts.step_times import BatchSource, StepTimes
from diagnostics.facts.where import Where
from diagnostics.report.step_times import advice

ITEMS = Where("data/reader.py", 9, "Files.__getitem__")
WAITING = {"loader": 9.0, "transfer": 0.001, "forward": 0.6, "backward": 0.3, "rest": 0.099}


def times(seconds=WAITING, source=None, **given):
    return StepTimes(steps=50, skipped=5, seconds=seconds, batches=50, source=source, cores=8, **given)


def test_a_terminal_needs_four_lines_at_most():
    report = Report("ran", time=times(source=BatchSource("DataLoader", 0, False, False, items=ITEMS)))
    assert str(report).splitlines()[1:-1] == [
        "time  200 ms per step (50 steps, without the first 5): loader 90%, forward 6%, backward 3%, rest 1%.",
        "      Training waits for its batches: one takes 180 ms, in Files.__getitem__ (data/reader.py:9) and",
        "      the collate function. Try num_workers=4 first; it is 0. torch.profiler shows more.",
        "",
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "Prepare them ahead"),
        (BatchSource("DataLoader", 2, persistent=False), "num_workers=2. Try more with persistent_workers"),
        (BatchSource("DataLoader", 2, persistent=True), "Try more, or save what the dataset computes"),
        (BatchSource("PyDataset", 1, items=ITEMS), "in Files.__getitem__ (data/reader.py:9). Try workers=4"),
        (BatchSource("tf.data", prefetches=False, caches=False), ".prefetch(tf.data.AUTOTUNE)"),
        (BatchSource("tf.data", prefetches=True, caches=False), ".map(), then .cache()"),
        (BatchSource("tf.data", prefetches=True, caches=True), "AUTOTUNE in .map()."),
    ],
)
def test_advice_depends_on_where_batches_come_from(source, said):
    assert said in " ".join(advice(times(source=source)))


def test_memory_is_pinned_for_an_accelerator_alone():
    source = BatchSource("DataLoader", 0, False, pinned=False)
    assert "pin_memory" not in " ".join(advice(times(source=source)))
    said = " ".join(advice(times(source=source, asynchronous=True)))
    assert "Try num_workers=4 and pin_memory=True first" in said
    assert said.startswith("This is the time of the host")


def test_a_rest_is_questioned_where_nothing_else_hides_in_it():
    slow = {"loader": 1.0, "forward": 1.0, "rest": 2.0}
    assert "call .item() less often" in advice(times(slow))[0]
    assert "it makes batches" in advice(times({"forward": 1.0, "rest": 2.0}))[0]
    assert "callbacks" in advice(times({"loader": 1.0, "step": 1.0, "rest": 2.0}))[-2]
    assert not any("rest" in said for said in advice(times(slow, asynchronous=True)))


def test_no_advice_below_the_bound():
    assert advice(times({"loader": 0.29, "forward": 0.71})) == ["torch.profiler shows more."]


def test_every_rendering_holds_it():
    report = Report("ran", time=times(source=BatchSource("DataLoader", 0, items=ITEMS)))
    for kind in ("html", "markdown"):
        assert "200 ms per step" in report.rendered(kind)
    written = json.loads(report.to_json())["time"]
    assert written["seconds_per_step"] == 0.2
    assert written["shares"] == {
        "loader": 0.9, "transfer": 0.0001, "forward": 0.06, "backward": 0.03, "rest": 0.0099,
    }  # fmt: skip
    assert json.loads(Report("ran").to_json())["time"] is None
