"""A traceback whose last line was not copied: what its frames show is told, and that the reason is missing."""

from __future__ import annotations

import pytest

import diagnostics

TORCH = "/home/ada/venv/lib/python3.10/site-packages/torch"


def told(*frames, after=""):
    """Return the report of a traceback that ends with these frames: file, function, source."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/ada/train.py", line 12, in <module>',
        "    main()",
    ]
    for file, function, code in frames:
        lines += [f'  File "{file}", line 40, in {function}', f"    {code}"]
    return diagnostics.explain("\n".join([*lines, after]))


def test_a_traceback_without_its_end_is_said_to_be_cut_off():
    report = told((f"{TORCH}/nn/functional.py", "nll_loss", "return torch._C._nn.nll_loss_nd(input)"))
    assert report.title == "explained a traceback without its last line"
    assert not report.findings
    assert report.crash.nature.startswith("The line with the exception is missing")
    assert report.crash.nature.endswith("opy the text to its end.")


@pytest.mark.parametrize(
    ("frame", "does", "cause"),
    [
        (
            (
                f"{TORCH}/distributed/rendezvous.py",
                "_tcp_rendezvous_handler",
                "store = TCPStore(host, port)",
            ),
            "the processes of a run meet",
            "Address already in use",
        ),
        (
            (f"{TORCH}/autograd/__init__.py", "backward", "Variable._execution_engine.run_backward("),
            "the gradients are computed",
            "does not require grad",
        ),
        (
            (
                f"{TORCH}/nn/functional.py",
                "cross_entropy",
                "return torch._C._nn.cross_entropy_loss(input)",
            ),
            "cross-entropy is computed",
            "labels.long()",
        ),
        (
            (f"{TORCH}/nn/functional.py", "embedding", "return torch.embedding(weight, input, padding_idx)"),
            "ids are looked up in an embedding",
            "resize_token_embeddings",
        ),
        (
            (f"{TORCH}/nn/modules/linear.py", "forward", "return F.linear(input, self.weight, self.bias)"),
            "a layer is applied",
            "mat1 and mat2",
        ),
        (
            (f"{TORCH}/utils/data/_utils/collate.py", "default_collate", "return torch.stack(batch, 0, out=out)"),
            "examples are joined into a batch",
            "equal size",
        ),
        (
            (f"{TORCH}/serialization.py", "load", "raise pickle.UnpicklingError(_get_wo_message(str(e)))"),
            "a file of weights is read",
            "weights_only=False",
        ),
        (("/home/ada/net.py", "<module>", "from timm.models.layers import DropPath"), "imported", "cannot import"),
    ],
)
def test_the_call_that_failed_and_its_usual_causes_are_named(frame, does, cause):
    report = told(frame, after="anyone faced the same problem?")
    assert not report.findings
    assert does in report.crash.nature
    assert cause in report.crash.nature
    assert "the cause is not certain" in report.crash.nature


def test_an_outer_call_is_told_with_where_the_text_ends():
    engine = (f"{TORCH}/autograd/__init__.py", "backward", "_engine_run_backward(")
    deeper = (f"{TORCH}/_ops.py", "__call__", "return self._op(*args, **kwargs)")
    nature = told(engine, deeper).crash.nature
    assert "the gradients are computed. The text ends in __call__ (torch/_ops.py:40)." in nature


def test_a_call_that_fails_for_many_reasons_is_told_without_causes():
    nature = told(("/home/ada/net.py", "forward", "return self.head(x)")).crash.nature
    assert nature == (
        "The line with the exception is missing: it says why. The last frame shown is forward "
        "(/home/ada/net.py:40), "
        "which alone tells no cause. Copy the text to its end."
    )


def test_in_a_notebook_the_exception_is_known():
    text = (
        "ValueError                                Traceback (most recent call last)\n"
        "Cell In[3], line 9\n----> 9 trainer.train()\n\n"
        "File /opt/venv/lib/python3.10/site-packages/transformers/tokenization_utils_base.py:707, in "
        "BatchEncoding.convert_to_tensors(self, tensor_type)\n    706 if not is_tensor(value):\n"
        "--> 707     tensor = as_tensor(value)\n"
    )
    nature = diagnostics.explain(text).crash.nature
    assert nature.startswith("The message of the ValueError is missing")
    assert "a batch of tokens is padded and becomes tensors" in nature


def test_a_log_that_goes_on_after_its_frames_was_not_ended_there():
    lines = ['  File "/home/ada/train.py", line 12, in step', "    loss.backward()"]
    with pytest.raises(diagnostics.InvalidInput):
        diagnostics.explain("\n".join([*lines, *(f"step {n} loss 0.5" for n in range(80))]))


BOX = """\
│     51 │   │   data = self.dataset[index]     │
│ ❱   54 │   │   return self.collate_fn(data)   │
│                                               │
│ /opt/venv/lib/python3.10/site-packages/transf │
│ ormers/data/data_collator.py:586 in __call__  │
│                                               │
│   585 │   │   │   else:                       │
│ ❱ 586 │   │   │   │   pad(features)           │
"""


def test_a_box_of_rich_without_its_top_is_read():
    said = "ValueError: expected sequence of length 12 at dim 1 (got 9)"
    (finding,) = diagnostics.explain(f"{BOX}╰───────────────────────────────────────────────╯\n{said}").findings
    assert finding.rule == "ragged-batch"
    cut = diagnostics.explain(BOX).crash
    assert [frame.function for frame in cut.frames] == ["__call__"]
    assert "padded" in cut.nature
