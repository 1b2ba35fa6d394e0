"""Patterns in the programs of the corpus, whose variables are renamed: their names must not be the evidence."""

import ast
from pathlib import Path

import pytest

from diagnostics.api.lint import lint
from diagnostics.collectors.source.read import patterns_in

TESTS = Path(__file__).resolve().parents[3]
BROKEN = TESTS / "recall/broken"
PROGRAMS = {
    "data/labels_unrelated/keras_shuffled_twice_after_one_seed": "shuffled_apart",
    "data/labels_unrelated/labels_shuffled_apart": "shuffled_apart",
    "data/labels_unrelated/outliers_dropped_from_the_inputs_alone": "cut_targets",
    "data/leaked_evaluation_rows/keras_test_accuracy_of_the_training_rows": "unread_splits",
    "data/leaked_evaluation_rows/val_accuracy_of_the_train_loader": "unread_splits",
    "data/leaked_evaluation_rows/validate_goes_through_the_training_loader": "unread_splits",
    "data/leaked_evaluation_rows/validation_loader_of_the_training_set": "unread_splits",
    "data/leaked_evaluation_rows/validation_loader_wraps_the_train_split": "unread_splits",
    "data/repeated_worker_randomness/crops_seeded_by_an_attribute": "constant_seeds",
    "data/repeated_worker_randomness/seed_set_for_each_item": "constant_seeds",
    "evaluation/evaluation_mismatch/test_series_scaled_by_itself": "refitted_scalers",
    "evaluation/metric_on_logits/churn_accuracy_rounds_the_logits": "thresholded_logits",
    "evaluation/metric_on_logits/keras_logits_predicted_above_a_half": "thresholded_logits",
    "evaluation/metric_on_logits/keras_probabilities_cast_to_int": "truncated_probabilities",
    "evaluation/metric_on_logits/logits_compared_with_a_half": "thresholded_logits",
    "evaluation/monitored_backwards/stops_when_the_loss_falls": "inverted_best",
    "evaluation/weights_kept_by_reference/best_model_points_at_the_live_one": "kept_models",
    "model/setting_without_effect/average_assigned_to_a_name": "lost_results",
    "model/setting_without_effect/transform_of_the_data_beneath_both_parts": "shared_settings",
    "optimizer/recreated_model/weights_initialised_in_each_epoch": "recreated_models",
}


class Renamed(ast.NodeTransformer):
    """Gives every variable and argument a name without a meaning; not functions, classes and modules."""

    def __init__(self, tree):
        nodes = list(ast.walk(tree))
        stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        given = [n.arg for n in nodes if isinstance(n, ast.arg) and n.arg not in ("self", "cls")]
        self.names = {name: f"v{place}" for place, name in enumerate(dict.fromkeys([*stored, *given]))}

    def visit_Name(self, node):
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)

    def visit_arg(self, node):
        return ast.copy_location(ast.arg(self.names.get(node.arg, node.arg), node.annotation), node)


def renamed(file):
    tree = ast.parse(file.read_text("utf-8"))
    return Renamed(tree).visit(tree)


@pytest.mark.parametrize(("program", "kind"), PROGRAMS.items())
def test_finds_the_bug_without_its_names(program, kind):
    found = [one for one in patterns_in(renamed(BROKEN / f"{program}.py"), "train.py") if one.kind == kind]
    assert found
    assert not found[0].by_name


@pytest.mark.parametrize("stage", ["data", "evaluation"])
def test_alarms_no_healthy_program(tmp_path, stage):
    for file in (TESTS / "recall/healthy" / stage).rglob("*.py"):
        (tmp_path / file.name).write_text(ast.unparse(renamed(file)), "utf-8")
    assert list(tmp_path.iterdir())
    assert lint([tmp_path]).lines == ()
