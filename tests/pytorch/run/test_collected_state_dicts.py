"""State dicts that a script collects over several trainings of one model, as in federated learning."""

import copy

import pytest
import torch
from torch import nn

from diagnostics.run.observer import ScriptObserver


def trained_on(model, rows):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(rows), rows[:, :1]).backward()
        optimizer.step()


@pytest.mark.parametrize(("kept", "found"), [(dict, ["warning"]), (copy.deepcopy, [])])
def test_are_found_in_the_report_of_the_first_training(kept, found):
    torch.manual_seed(0)
    model, server = nn.Linear(6, 1), nn.Linear(6, 1)
    run = ScriptObserver()
    try:
        for _ in range(2):
            states = []
            for rows in torch.randn(6, 16, 6):
                model.load_state_dict(copy.deepcopy(server.state_dict()))
                trained_on(model, rows)
                states.append(kept(model.state_dict()))
            server.load_state_dict({key: sum(state[key] for state in states) / 6 for key in states[0]})
    finally:
        run.close()
    assert run.faults == []
    findings = [finding for report in run.examined for finding in report.findings]
    assert [one.severity for one in findings if one.rule == "weights-kept-by-reference"] == found
