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
    assert finding.message == (
        "The script sets `requires_grad = False` on a module: outc. A module has no such setting, and PyTorch "
        "does not read it: the parameters of this Linear still require gradients, and Adam steps on all of them."
    )
    assert finding.fix == "model.outc.requires_grad_(False)"


def test_names_the_first_of_the_parameters_with_a_typo():
    finding = RULE.from_settings(SettingFacts((TYPO,)))
    assert finding.message == (
        "The script sets `require_grad = False` on 4 parameters: a.weight, a.bias, b.weight and 1 more. PyTorch "
        "reads `requires_grad`, and no other name: they still require gradients, and SGD steps on them."
    )
    assert finding.fix == "parameter.requires_grad = False"
    assert finding.evidence["paths"] == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_says_which_rate_was_used():
    finding = RULE.from_settings(SettingFacts((RATE,)))
    assert finding.message == (
        "The script sets `lr = 0.005` on the optimizer (SGD), which reads the rates of its parameter groups and "
        "not this attribute: in every step looked at it used 0.05."
    )
    assert finding.fix == 'for group in optimizer.param_groups: group["lr"] = 0.005'


def test_says_where_the_rows_of_a_subset_come_from():
    finding = RULE.from_settings(SettingFacts((SUBSET,)))
    assert finding.message == (
        "The script sets `transform` on a Subset, to augment. A Subset has no such setting: its rows come from "
        "the Plants beneath, whose own `transform` is None. So augment is never called."
    )


def test_says_when_the_order_was_chosen_and_counts_the_others():
    finding = RULE.from_settings(SettingFacts((SHUFFLE, SUBSET)))
    assert finding.message == (
        "The script sets `shuffle = True` on a DataLoader that was made without it. The sampler was chosen when "
        "it was made, and gives the rows in their order. The same holds for transform of Plants."
    )
    assert finding.fix == "DataLoader(dataset, ..., shuffle=True)"


@pytest.mark.parametrize("path", ["", "layers.0"])
def test_writes_the_path_of_the_module_in_the_fix(path):
    idle = IdleSetting("module", "Net", "trainable", "False", (path,), steps_on="SGD")
    fix = RULE.from_settings(SettingFacts((idle,))).fix
    assert fix == ("model.layers.0.requires_grad_(False)" if path else "model.requires_grad_(False)")


def test_is_silent_without_any():
    assert RULE.from_settings(SettingFacts(())) is None


def test_names_a_transform_that_another_part_replaces():
    shared = written("shared_settings", "train", "val", "transform", "augment", "plain")
    finding = SettingWithoutEffect().from_source(shared)
    assert finding.severity == "warning"
    assert finding.message == (
        "`train` and `val` are parts of one data set, so `val.dataset.transform = plain` also replaces what "
        "`train.dataset.transform` was set to. `augment` is never used, in training neither."
    )
    assert SettingWithoutEffect().from_source(WrittenPatterns()) is None


def test_names_a_moving_average_that_is_never_written():
    lost = written("lost_results", "e = 0.9 * e + 0.1 * p", "e", "rebound", line=12)
    finding = RULE.from_source(lost)
    assert finding.severity == "warning"
    assert finding.message == (
        "`e = 0.9 * e + 0.1 * p` makes the name `e` stand for a new tensor. The parameter for which it stood "
        "stays as it was, and so does the model."
    )
    assert finding.where.line == 12


def test_names_a_mask_that_is_not_applied():
    lost = written("lost_results", "scores.masked_fill(mask, -1e9)", "scores", "", line=5)
    finding = RULE.from_source(lost)
    assert finding.message == (
        "`scores.masked_fill(mask, -1e9)` returns a new object, which is kept nowhere, and `scores` stays as it "
        "was: the line has no effect."
    )
    assert finding.fix == "scores = scores.masked_fill(mask, -1e9)"


def test_names_layers_whose_losses_a_train_step_leaves_out():
    finding = RULE.from_losses(UnreadLosses("train_step", ("dense", "dense_1"), ("sampling",)))
    assert (finding.rule, finding.severity) == ("setting-without-effect", "warning")
    assert finding.message == (
        "dense and dense_1 have regularizers, and sampling calls add_loss, and the `train_step` of the script "
        "never reads `self.losses`, where Keras collects what they add. The loss that is minimised is without it, "
        "as if it were not there."
    )
    assert finding.fix == "loss += sum(self.losses)  # within the tape"


def test_names_a_layer_whose_penalty_a_loop_leaves_out():
    finding = RULE.from_losses(UnreadLosses("loop", ("conv",), ()))
    assert finding.message.startswith(
        "conv has a regularizer, and the loop over the batches of the script never reads `model.losses`"
    )
    assert finding.fix == "loss += sum(model.losses)  # within the tape"
