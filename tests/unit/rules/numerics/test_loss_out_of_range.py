import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.loss_call import Argument, LossCall, LossCalls
from diagnostics.facts.pipeline import LossFacts
from diagnostics.rules.numerics.loss_out_of_range import LossOutOfRange
from tests.support.courses import history, judge

RULE = LossOutOfRange()
VERDICTS = Verdicts(frozenset(), frozenset())
SHARES = np.full((4, 5), 0.2)
RAW = np.tile([0.01, 0.1, 0.2, 0.3, 0.8], (4, 1))


def calls(function, value, prediction=RAW, target=SHARES, **further):
    names = ("y_pred", "y_true") if function.endswith(("divergence", "crossentropy")) else ("input", "target")
    given = {name: Argument.of(array) for name, array in zip(names, (prediction, target), strict=True)}
    return LossCalls((LossCall(function, given, value=value, **{"whole": True, **further}),))


def first(*arguments, **further):
    return RULE.from_first_step(calls(*arguments, **further), LossFacts(0.0, "other"))


def course(losses, *arguments):
    return judge(RULE.from_course, history(losses), calls(*arguments), VERDICTS)


SIGNS = np.array([[-1.0], [1.0], [1.0]])
BINARY = ("binary_cross_entropy_with_logits", 0.7, np.zeros((3, 1)), SIGNS)


class TestFires:
    def test_on_a_divergence_of_probabilities(self):
        finding = first("kl_div", -1.73)
        assert (finding.rule, finding.severity, finding.step) == ("loss-out-of-range", "error", 0)
        assert (finding.evidence["lowest_target"], finding.evidence["highest_input"]) == (0.2, 0.8)

    def test_on_a_divergence_that_is_one_of_several_terms(self):
        assert first("kl_div", -1.73, whole=False).severity == "error"

    def test_on_the_ends_of_a_prediction_of_which_only_rows_are_kept(self):
        given = {"input": Argument(RAW, (-7.0, 8.0), 9000), "target": Argument.of(SHARES)}
        large = LossCalls((LossCall("kl_div", given, value=-2.0, whole=True),))
        assert RULE.from_first_step(large, LossFacts(0.0, "other")).severity == "error"

    def test_on_a_binary_cross_entropy_that_falls_without_end(self):
        assert course(np.linspace(0.7, -5870, 100), *BINARY).severity == "error"

    def test_on_outputs_that_are_no_distribution(self):
        assert (
            course(np.linspace(3.1, -9.0, 100), "kl_divergence", 3.1, np.full((4, 5), 1.1), SHARES).severity
            == "error"
        )

    def test_on_targets_that_are_no_distribution(self):
        assert first("kl_divergence", -2.0, SHARES, SHARES / 50).severity == "error"


def test_leaves_the_course_to_the_finding_that_names_the_targets():
    found = Verdicts(frozenset({"targets-out-of-reach"}), frozenset())
    with pytest.raises(NotApplicable):
        judge(RULE.from_course, history(np.linspace(0.7, -5870, 100)), calls(*BINARY), found)


class TestSilent:
    @pytest.mark.parametrize(
        "given",
        [
            ("kl_div", -1e-6, np.log(SHARES)),
            ("kl_div", -0.3, np.log(SHARES)),
            ("kl_div", -0.3, np.log(SHARES).reshape(4, 5, 1)),
            ("kl_divergence", -0.3, SHARES, SHARES),
            ("kl_div", 0.3),
            ("binary_crossentropy", 0.5, SHARES, SHARES),
            ("cross_entropy", -0.5, RAW, np.array([0, 4, 2, 1])),
        ],
        ids=[
            "rounding",
            "partial targets",
            "classes second",
            "distributions",
            "not negative",
            "shares",
            "indices",
        ],
    )
    def test_on_right_arguments(self, given):
        assert first(*given) is None

    def test_on_a_course_above_zero(self):
        assert course(np.linspace(0.7, 0.1, 100), *BINARY) is None


@pytest.mark.parametrize(
    ("function", "further"),
    [("gaussian_nll_loss", {}), ("mse_loss", {"weighted": True}), ("mse_loss", {"whole": False})],
)
def test_not_applicable_to_losses_that_may_be_negative(function, further):
    with pytest.raises(NotApplicable):
        first(function, -3.0, **further)
