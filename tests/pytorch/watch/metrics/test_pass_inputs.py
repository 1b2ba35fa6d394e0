"""What a model got is compared with its targets, without the targets themselves."""

from __future__ import annotations

import torch

from diagnostics.collectors.pytorch.watch.metrics.outputs.pass_inputs import are_whole, features


def test_leaves_out_labels_that_are_passed_for_the_loss() -> None:
    x, labels = torch.randn(4, 3), torch.randn(4)
    kept = features(((), {"x": x, "labels": labels}), 4, slice(None))
    assert kept is not None
    assert torch.equal(kept, x)


def test_keeps_a_second_input_of_another_name() -> None:
    kept = features(((), {"x": torch.randn(4, 3), "y": torch.randn(4)}), 4, slice(None))
    assert kept is not None
    assert kept.shape == (4, 4)


def test_integer_labels_do_not_make_float_inputs_partial() -> None:
    assert are_whole(((), {"x": torch.randn(4, 3), "labels": torch.arange(4)}), 4)
    assert not are_whole(((), {"x": torch.randn(4, 3), "kind": torch.arange(4)}), 4)
