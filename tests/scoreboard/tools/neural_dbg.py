"""neuraldbg: the training inside `with NeuralDbg(model) as dbg`, `dbg.record_loss(...)` at each step.

It extracts events: a layer's gradients, activations or inputs, or the loss, pass into another state. Each event
into a state that it does not call healthy is taken for an answer. Without the paid engine `explain_failure()`
explains data anomalies and optimizer instability, by the same events, and none of the other failures that it
lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neuraldbg import NeuralDbg

from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script

HEALTHY = {"healthy", "normal", "stable"}
NAMES = {
    "gradient_health_transition": "gradients",
    "activation_regime_shift": "activations",
    "optimizer_instability": "loss",
    "data_anomaly": "data",
}


@contextmanager
def asked(script: Script, answers: Answers) -> Iterator[None]:
    with NeuralDbg(script.model) as dbg:

        def record(loss: float) -> None:
            dbg.record_loss(loss)
            dbg.step += 1

        script.after_each_backward(record)
        try:
            yield
        finally:
            for event in dbg.get_events():
                if event.to_state not in HEALTHY:
                    kind = f"{NAMES[event.event_type.value]}: {event.to_state.replace('_', ' ')}"
                    answers.add(kind, "warning", f"{event.layer_name}, step {event.step}")
