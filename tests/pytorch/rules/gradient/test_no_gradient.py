import pytest
import torch

import diagnostics


class TestAdapters:
    def test_the_frames_of_a_crash_show_it(self):
        model = torch.nn.Linear(2, 2).requires_grad_(False)
        for adapters in (False, True):
            if adapters:
                model.peft_config = {"default": None}
            with pytest.raises(RuntimeError, match="does not require grad") as crash:
                model(torch.ones(1, 2)).sum().backward()
            (finding,) = diagnostics.explain(crash.value).findings
            assert ("enable_input_require_grads" in finding.fix) == adapters
