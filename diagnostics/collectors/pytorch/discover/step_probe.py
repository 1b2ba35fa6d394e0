"""Probes of the first step of a loop: what they may ask. Their files are in the folder `probes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from diagnostics.collectors.probe import Probe

if TYPE_CHECKING:
    from .first_step_pipeline import FirstStepPipeline


class StepProbe(Probe[Any]):
    """Measures one thing of a recorded step, of which nothing is run again.

    Attributes:
        stage: of the pipeline, that its facts belong to.
    """

    subject: FirstStepPipeline
    when = "first step"
    stage: ClassVar[Literal["dataset", "batch", "forward", "optimizer step"]]
