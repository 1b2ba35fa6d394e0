"""What the pages of the cages of several ranks show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from book import ranks
from book.ranks import RanksRun, Span
from bugs.zoo.keeper.verified import Said


def spans_of(tmp_path: Path, *lines: tuple[str, str, float, object]) -> tuple[Span, ...]:
    file = tmp_path / "rank0.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ranks._spans(file)


def a_run(*of_ranks: tuple[Span, ...]) -> RanksRun:
    return RanksRun(Said(0, "", ""), {"findings": []}, of_ranks)


def test_what_had_not_ended_stays_open(tmp_path: Path) -> None:
    spans = spans_of(
        tmp_path,
        ("forward", "begin", 1.0, "ab"),
        ("forward", "end", 1.5, None),
        ("barrier", "begin", 2.0, None),
        ("all_reduce", "begin", 2.1, None),
    )
    assert spans == (
        Span("forward", 1.0, 1.5, "ab"),
        Span("barrier", 2.0, None, None),
        Span("all_reduce", 2.1, None, None),
    )


def step(start: float, batch: str) -> tuple[Span, ...]:
    return Span("forward", start, start + 1, batch), Span("backward", start + 1, start + 2, 0.5)


class TestFigures:
    def test_a_timeline_shows_the_last_steps_of_each_rank(self) -> None:
        done = a_run(
            (*step(0, "a"), *step(5, "b")), (*step(0, "c"), *step(5, "d"), Span("barrier", 7, None, None))
        )
        (axes,) = ranks.timeline(done, steps=1, words=["done", "waits"]).axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["rank 0", "rank 1"]
        assert axes.get_xlim()[1] == pytest.approx(2.2 * 2000)
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        assert legend == ["forward", "backward", "barrier", "did not end"]

    def test_equal_batches_have_equal_numbers(self) -> None:
        same, other = (*step(0, "a"), *step(5, "b")), (*step(0, "c"), *step(5, "d"))
        broken, repaired = ranks.batch_strip(a_run(same, same), a_run(same, other), steps=2).axes
        assert [text.get_text() for text in broken.texts] == ["0", "1", "0", "1"]
        assert [text.get_text() for text in repaired.texts] == ["0", "1", "2", "3"]

    def test_losses_are_those_of_each_rank(self) -> None:
        done = a_run(step(0, "a"), step(0, "b"))
        left, _ = ranks.loss_curves(done, done).axes
        assert [list(line.get_ydata()) for line in left.get_lines()] == [[0.5], [0.5]]
