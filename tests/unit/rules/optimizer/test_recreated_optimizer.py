from diagnostics.facts.calls import RemadeOptimizer
from diagnostics.rules.optimizer.recreated_optimizer import RecreatedOptimizer


def test_names_an_optimizer_that_is_made_for_each_step():
    finding = RecreatedOptimizer().from_steps(RemadeOptimizer("Adam", 20))
    assert (finding.rule, finding.severity, finding.stage) == ("recreated-optimizer", "warning", "optimizer")
    assert finding.message == (
        "A new Adam was made for each step, 20 times in a row. Each began without the averages of the steps "
        "before, which are all that it has over plain gradient descent: without them a step of Adam moves each "
        "weight by the full learning rate, however small its gradient."
    )
    assert finding.fix == "optimizer = Adam(model.parameters(), ...)  # once, before the loop"
