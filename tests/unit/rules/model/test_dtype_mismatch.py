import pytest

from diagnostics.facts.crash import CrashFacts, DtypesDiffer, FrameFacts
from diagnostics.rules.model.dtype_mismatch import DtypeMismatch

RULE = DtypeMismatch()
CRASH = CrashFacts("RuntimeError", "", (FrameFacts("train.py", 31, "<module>", yours=True),), live=False)


class TestFromCrash:
    def test_names_dtypes_and_tensors(self):
        tensors = {"input": "float64", "self.weight": "float32", "self.bias": "float32"}
        finding = RULE.from_crash(CRASH, DtypesDiffer("operands", "float64", "float32", None, tensors))
        assert finding.severity == "error"
        assert str(finding.where) == "train.py:31"

    def test_says_what_an_old_message_leaves_open(self):
        assert RULE.from_crash(CRASH, DtypesDiffer("operands")).severity == "error"

    def test_half_precision_gets_autocast(self):
        assert RULE.from_crash(CRASH, DtypesDiffer("operands", "float32", "float16")).severity == "error"

    def test_a_loss_wants_class_indices(self):
        assert RULE.from_crash(CRASH, DtypesDiffer("classes", "float32", "int64")).severity == "error"

    def test_a_loss_wants_floating_point(self):
        assert RULE.from_crash(CRASH, DtypesDiffer("target", "int64", "float32")).severity == "error"

    def test_a_result_that_does_not_fit_is_of_a_loss_or_in_place(self):
        assert RULE.from_crash(CRASH, DtypesDiffer("result", "int64", "float32")).severity == "error"

    def test_half_precision_on_a_cpu_gets_bfloat16(self):
        assert (
            RULE.from_crash(CRASH, DtypesDiffer("no kernel", "float16", None, "addmm_impl_cpu_")).severity
            == "error"
        )

    @pytest.mark.parametrize(("kind", "got"), [("indices", "float32"), ("integers", "int64")])
    def test_names_the_dtype_that_is_wanted(self, kind, got):
        assert RULE.from_crash(CRASH, DtypesDiffer(kind, got)).severity == "error"
