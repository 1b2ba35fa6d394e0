"""Probes of the first step of a loop: what they may ask. Their files are in the folder `probes`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from diagnostics.collectors.probe import Probe


class StepProbe(Probe[Any]):
    """Measures one thing of a recorded step, of which nothing is run again; the subject is `FirstStepPipeline`.

    Attributes:
        stage: of the pipeline, that its facts belong to.
    """

    when = "first step"
    stage: ClassVar[Literal["dataset", "batch", "forward", "optimizer step"]]
