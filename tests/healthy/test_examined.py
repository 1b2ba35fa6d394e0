"""Programs that train right: `examine` must find nothing wrong with them.

That they learn, and that `diagnose run` leaves them alone, is tested in `test_observed.py` (plain PyTorch
loops) and in `tests/side_effects/`.
"""

import pytest

import diagnostics
from tests.support.healthy import PROGRAMS, few_of, load

# Loops that `examine` does not take: of several optimizers or none, without a loader, or called in parts.
ONLY_WATCHED = [path for path in PROGRAMS if path.stem.startswith(("watched_", "script_"))]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.mark.slow
@pytest.mark.parametrize("path", few_of(PROGRAMS), ids=lambda path: path.stem)
class TestHealthyProgram:
    def test_gets_a_report_without_errors_and_warnings(self, path):
        if path in ONLY_WATCHED:
            pytest.skip("examine takes one optimizer, and data in batches")
        report = diagnostics.examine(*load(path).build())
        assert report.ok, str(report)
        assert report.faults == ()
        walked = {stage.name: stage.status for stage in report.stages if stage.name != "evaluation metric"}
        assert set(walked.values()) <= {"passed", "not judged"}, str(report)
        assert walked["one-batch overfit"] == "passed"


def test_there_are_programs_of_every_kind_that_the_library_promises_to_leave_alone():
    kinds = {path.stem for path in PROGRAMS}
    assert {
        "mlp_classifier",
        "cnn_batch_norm",
        "lstm_classifier",
        "transformer_encoder",
        "regression",
        "token_classification",
        "frozen_backbone",
        "trainer_gpt2",
        "keras_regression",
        "keras_softmax",
        "keras_multi_label",
        "keras_cnn_batch_norm",
        "keras_two_inputs",
        "keras_class_weights",
        "warm_up_spike",
        "large_sgd_rate",
        "watched_two_networks",
        "accumulation",
        "target_network",
        "tied_language_model",
        "label_smoothing",
        "schedule_to_zero",
        "autocast_bfloat16",
        "keras_xor",
        "xor",
        "augmentation",
    } <= kinds
