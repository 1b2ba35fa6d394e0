import pytest

from diagnostics.engine.finding import Finding
from diagnostics.rules.registry import all_rules, causality_of

NAMES = {rule.name for rule in all_rules()}
CAUSES = {rule.name: rule.causes for rule in all_rules() if rule.causes}
follows, explains = causality_of(all_rules()).follows, causality_of(all_rules()).explains


class TestCauses:
    def test_names_rules_alone(self):
        named = {*CAUSES, *(rule for rules in CAUSES.values() for rule in rules)}
        assert named - NAMES == set()

    @pytest.mark.parametrize("cause", CAUSES)
    def test_tells_nothing_twice_and_nothing_of_itself(self, cause):
        rules = CAUSES[cause]
        assert len(set(rules)) == len(rules)
        assert cause not in rules

    def test_no_two_rules_are_each_others_cause(self):
        assert [(a, b) for a in NAMES for b in NAMES if follows(a, b) and follows(b, a)] == []


class TestFollows:
    def test_at_once(self):
        assert follows("loss-plateau", "labels-out-of-range")

    def test_by_steps_between(self):
        assert "exploding-gradients" not in CAUSES["default-learning-rate"]
        assert follows("exploding-gradients", "default-learning-rate")

    def test_not_the_other_way_round(self):
        assert not follows("labels-out-of-range", "loss-plateau")

    def test_not_from_itself(self):
        assert not any(follows(name, name) for name in NAMES)


class TestExplains:
    @pytest.mark.parametrize(
        ("grew", "ran_out", "explained"),
        [
            ({}, {"device": "GPU 0", "tried_bytes": 900}, True),
            ({"memory_of": "process", "grew_bytes": 900.0}, {"device": "CPU", "tried_bytes": 900}, True),
            ({"memory_of": "process", "grew_bytes": 900.0}, {"device": "CPU", "tried_bytes": None}, True),
            ({"memory_of": "process", "grew_bytes": 900.0}, {"device": "CPU", "tried_bytes": 901}, False),
            ({"memory_of": "process", "grew_bytes": 900.0}, {"device": "GPU 0", "tried_bytes": 1}, False),
            ({"memory_of": "accelerator", "grew_bytes": 900.0}, {"device": "GPU 0", "tried_bytes": 1}, True),
            ({"memory_of": "accelerator", "grew_bytes": 900.0}, {"device": "CPU", "tried_bytes": 1}, False),
        ],
        ids=[
            "what is kept is known",
            "as much as was asked for",
            "nobody knows what was asked for",
            "less than was asked for",
            "on the host, not on the card",
            "on the card",
            "on the card, not on the host",
        ],
    )
    def test_memory_that_ran_out_by_the_growth_of_the_same_memory(self, grew, ran_out, explained):
        growth = Finding("growing-memory", "note", "memory", "It grows.", "keep less", evidence=grew)
        end = Finding("out-of-memory", "error", "memory", "It ran out.", "take less", evidence=ran_out)
        assert explains(growth, end) == explained
        assert not explains(end, growth)

    @pytest.mark.parametrize("died", [True, False])
    def test_units_that_died_while_labels_belonged_to_other_rows(self, died):
        unrelated = Finding("labels-unrelated", "error", "data", "They differ.", "one order")
        dead = Finding(
            "dead-units", "warning", "model", "They are zero.", "start elsewhere", evidence={"died": died}
        )
        assert explains(unrelated, dead) == died

    @pytest.mark.parametrize("unlearnable", [True, False])
    def test_a_run_without_progress_by_dead_units_unless_targets_are_unlearnable(self, unlearnable):
        dead = Finding("dead-units", "note", "model", "Zero.", "rows", evidence={"unlearnable": unlearnable})
        still = Finding("not-learning", "note", "optimizer", "It ended as it began.", "look at the rows")
        assert explains(dead, still) != unlearnable
