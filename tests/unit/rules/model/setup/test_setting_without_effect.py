import pytest

from diagnostics.facts.calls import UnreadLosses
from diagnostics.facts.written import IdleSetting, SettingFacts, WrittenPatterns
from diagnostics.rules.model.setup.setting_without_effect import SettingWithoutEffect
from tests.support.sources import written

RULE = SettingWithoutEffect()
FROZEN = IdleSetting("module", "Linear", "requires_grad", "False", ("outc",), steps_on="Adam")
TYPO = IdleSetting(
    "parameter", "Parameter", "require_grad", "False", ("a.weight", "a.bias", "b.weight", "b.bias"), steps_on="SGD"
)
RATE = IdleSetting("optimizer", "SGD", "lr", "0.005", instead="0.05")
SUBSET = IdleSetting("subset", "Plants", "transform", "augment", instead="None")
SHUFFLE = IdleSetting("loader", "DataLoader", "shuffle", "True")


def test_names_a_module_that_is_not_frozen():
    finding = RULE.from_settings(SettingFacts((FROZEN,)))
    assert (finding.rule, finding.stage, finding.severity) == ("setting-without-effect", "model", "warning")


def test_names_the_first_of_the_parameters_with_a_typo():
    finding = RULE.from_settings(SettingFacts((TYPO,)))
    assert finding.evidence["paths"] == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_says_which_rate_was_used():
    assert RULE.from_settings(SettingFacts((RATE,))).severity == "warning"


def test_says_where_the_rows_of_a_subset_come_from():
    assert RULE.from_settings(SettingFacts((SUBSET,))).severity == "warning"


def test_says_when_the_order_was_chosen_and_counts_the_others():
    assert RULE.from_settings(SettingFacts((SHUFFLE, SUBSET))).severity == "warning"


@pytest.mark.parametrize("path", ["", "layers.0"])
def test_writes_the_path_of_the_module_in_the_fix(path):
    idle = IdleSetting("module", "Net", "trainable", "False", (path,), steps_on="SGD")
    fix = RULE.from_settings(SettingFacts((idle,))).fix
    assert fix == ("model.layers[0].requires_grad_(False)" if path else "model.requires_grad_(False)")


def test_is_silent_without_any():
    assert RULE.from_settings(SettingFacts(())) is None


def test_names_a_transform_that_another_part_replaces():
    shared = written("shared_settings", "train", "val", "transform", "augment", "plain")
    finding = SettingWithoutEffect().from_source(shared)
    assert finding.severity == "warning"
    assert SettingWithoutEffect().from_source(WrittenPatterns()) is None


def test_names_a_moving_average_that_is_never_written():
    lost = written("lost_results", "e = 0.9 * e + 0.1 * p", "e", "rebound", line=12)
    finding = RULE.from_source(lost)
    assert finding.severity == "warning"
    assert finding.where.line == 12


def test_names_a_mask_that_is_not_applied():
    lost = written("lost_results", "scores.masked_fill(mask, -1e9)", "scores", "", line=5)
    assert RULE.from_source(lost).severity == "warning"


def test_names_layers_whose_losses_a_train_step_leaves_out():
    finding = RULE.from_losses(UnreadLosses("train_step", ("dense", "dense_1"), ("sampling",)))
    assert (finding.rule, finding.severity) == ("setting-without-effect", "warning")


def test_names_a_layer_whose_penalty_a_loop_leaves_out():
    assert RULE.from_losses(UnreadLosses("loop", ("conv",), ())).severity == "warning"


def test_names_a_layer_whose_loss_a_model_leaves_out():
    finding = RULE.from_losses(UnreadLosses("compute_loss", (), ("experts",)))
    assert finding.alternatives == ("loss = super().compute_loss(x, y, y_pred), which adds these terms",)


def test_names_a_number_that_was_read_while_tracing():
    idle = IdleSetting("traced", "LoadVAE", "kl_weight", "1", (), "0", "928 of the 960 steps")
    finding = RULE.from_settings(SettingFacts((idle,)))
    assert (finding.severity, finding.evidence["value"]) == ("warning", "1")
