import torch

import diagnostics


class TestFiresWhileTraining:
    def test_on_a_real_loop_with_a_detach(self):
        torch.manual_seed(0)
        encoder, head = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        model = torch.nn.ModuleDict({"encoder": encoder, "head": head})
        optimizer = torch.optim.AdamW(model.parameters())
        with diagnostics.watch(model, optimizer) as watch:
            for _ in range(60):
                inputs = torch.randn(16, 6)
                optimizer.zero_grad()
                logits = head(encoder(inputs).relu().detach())
                torch.nn.functional.cross_entropy(logits, inputs[:, :3].argmax(1)).backward()
                optimizer.step()
        (finding,) = [one for one in watch.report().findings if one.rule == "unreached-parameters"]
        assert finding.evidence["layers"] == ["encoder"]
