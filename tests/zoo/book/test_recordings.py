"""A step drawn on two clocks, and what the page says of a real GPU."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from matplotlib.figure import Figure

from book import recordings
from bugs.zoo.keeper.measurement import Span, Step

FAILED = Step(
    "simulated device",
    host=(Span("forward", 0.0, 2.0), Span("cross_entropy", 2.0, 3.0), Span("loss.item()", 3.0, 9.0)),
    waits=(Span("item", 3.0, 9.0),),
    launches=(0.5, 2.5),
    work=(Span("forward", 1.0, 6.0), Span("cross_entropy", 6.0, 8.5)),
    error="AcceleratorError: CUDA error: device-side assert triggered (simulated device)",
)
SOUND = Step(
    "Tesla T4",
    host=(Span("forward", 0.0, 2.0), Span("synchronize", 2.0, 5.0)),
    waits=(Span("synchronize", 2.0, 5.0),),
    launches=(),
    work=(Span("forward", 1.0, 4.5),),
    error="",
)
RECORD: dict[str, Any] = {
    "date": "2026-11-21",
    "card": {"name": "Tesla T4", "memory": 15 << 30, "driver": "570.86", "torch": "2.13.0", "cuda": "13.0"},
    "said": {"python bugs/07_out_of_memory/train.py": "OutOfMemoryError: CUDA out of memory."},
    "steps": {},
    "memory": {"bugs/07_out_of_memory/train.py": {"allocated_peak": 2048 << 20, "reserved_peak": 2050 << 20}},
}


class TestTimelines:
    def test_says_where_it_failed_and_where_the_host_was_told(self) -> None:
        (axes,) = recordings.timelines(FAILED).axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["host", "simulated device"]
        assert [(note.get_text(), note.xy) for note in axes.texts] == [("fails", (8.5, 0)), ("is told", (9.0, 1))]
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.texts] == ["forward", "cross_entropy", "waits"]

    def test_a_lost_card_leaves_its_row_empty(self) -> None:
        lost = Step("Tesla T4", FAILED.host, FAILED.waits, (), (), FAILED.error)
        (axes,) = recordings.timelines(lost).axes
        assert [note.get_text() for note in axes.texts] == ["is told"]

    def test_a_sound_step_is_drawn_without_marks(self) -> None:
        (axes,) = recordings.timelines(SOUND).axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["host", "Tesla T4"]
        assert [note.get_text() for note in axes.texts] == []


class TestParts:
    def test_nothing_recorded_is_said_in_one_line(self) -> None:
        (only,) = recordings.parts(None)
        assert only.data == (  # type: ignore[union-attr]
            "*Not yet recorded on a GPU.* On a machine that has one, `nox -s record-gpu` fills this place."
        )

    def test_each_step_has_its_picture(self) -> None:
        steps = {"bugs/03_cuda_error/train.py": asdict(FAILED)}
        _, name, picture = recordings.parts(RECORD | {"steps": steps})
        assert name.data == "One step of `bugs/03_cuda_error/train.py`:"  # type: ignore[union-attr]
        assert isinstance(picture, Figure)


class TestWords:
    def test_name_the_card_what_was_said_and_the_memory(self) -> None:
        assert recordings.words(RECORD) == (
            "Recorded on 2026-11-21 on one Tesla T4 (15,360 MiB), driver 570.86, PyTorch 2.13.0, CUDA 13.0.\n\n"
            "```text\n$ python bugs/07_out_of_memory/train.py\n…\nOutOfMemoryError: CUDA out of memory.\n```\n\n"
            "| script | most held by tensors, MiB | most held by PyTorch, MiB |\n|---|---|---|\n"
            "| `bugs/07_out_of_memory/train.py` | 2,048 | 2,050 |"
        )
