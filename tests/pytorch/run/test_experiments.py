"""Experiments in the second look of `diagnose run`, from a script to its report."""

import json
import textwrap

import pytest

SCRIPT = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(800, 12)
    y = x @ torch.randn(12, 1) / 3
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(8):
        for start in range(0, 800, 40):
            loss = ((model(x[start : start + 40]) - y[start : start + 40]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())
    """


@pytest.fixture
def run(torch_forks, tmp_path):
    """Run `diagnose run` on the script with a part of it replaced; return its report."""

    def run(*parts):
        text = textwrap.dedent(SCRIPT)
        for old, new in parts:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "train.py").write_text(text)
        arguments = ["diagnose", "run", "--output", "r.json", "--quiet", "--second-look", "30", "train.py"]
        torch_forks.run(
            "import sys; from diagnostics.cli.main import main; sys.exit(main())", *arguments, folder=tmp_path
        )
        report = json.loads((tmp_path / "r.json").read_text())
        assert report["faults"] == []
        return report

    return run


def look(report):
    return next(stage["detail"] for stage in report["stages"] if stage["name"] == "second look")


def test_a_loss_that_is_written_out_is_repeated_at_a_rate_that_learns(run):
    report = run(("lr=0.1", "lr=1e-7"))
    (finding,) = report["findings"]
    assert (finding["rule"], finding["severity"]) == ("learning-rate-too-low", "warning")
    assert finding["fix"] == "torch.optim.SGD(model.parameters(), lr=0.01)"
    assert "ran experiments on copies" in look(report)
    assert [len(losses) for losses in finding["evidence"]["loss_curves"].values()] == [150, 150]


def test_clipping_is_named_and_not_the_rate_that_makes_up_for_it(run):
    clip = "nn.utils.clip_grad_norm_(model.parameters(), 1e-6)\n        optimizer.step()"
    report = run(
        ("optimizer.step()", clip), ("((model(x", "F.mse_loss(model(x"), ("- y[", ", y["), (") ** 2).mean()", ")")
    )
    assert [(f["rule"], f["evidence"]["best_experiment"]) for f in report["findings"]] == [
        ("not-learning", "no clipping")
    ]
    assert [one["rule"] for one in report["findings"][0]["consequences"]] == ["learning-rate-too-low"]


def test_no_copy_is_trained_for_a_run_that_learns(run):
    report = run()
    assert report["findings"] == []
    assert "experiment" not in look(report)


def test_no_change_is_named_where_targets_have_nothing_to_do_with_inputs(run):
    report = run(("y = x @ torch.randn(12, 1) / 3", "y = torch.randn(800, 1)"), ("lr=0.1", "lr=0.001"))
    assert [(f["rule"], f["severity"]) for f in report["findings"]] == [("not-learning", "note")]
    assert report["findings"][0]["evidence"]["best_experiment"] is None
    assert len(report["findings"][0]["evidence"]["experiments"]) > 5


def test_a_loss_that_cannot_be_repeated_is_said(run):
    report = run(("** 2).mean()", ".abs() ** 1.5).mean()"), ("lr=0.1", "lr=1e-7"))
    assert "no experiment on copies could be run: its loss is neither" in look(report)
