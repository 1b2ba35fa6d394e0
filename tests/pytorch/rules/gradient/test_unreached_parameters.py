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

    def test_on_units_that_are_dead_from_the_start(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        torch.nn.init.constant_(model[0].bias, -100.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with diagnostics.watch(model, optimizer) as watch:
            for _ in range(60):
                inputs = torch.randn(16, 6)
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)).backward()
                optimizer.step()
        report = watch.report()
        findings = [one for cause in report.findings for one in (cause, *cause.consequences)]
        (finding,) = [one for one in findings if one.rule == "unreached-parameters"]
        assert "got gradients of exactly 0 at all 60 recorded steps: 0." in finding.message
