from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.usage import DtypesDiffer
from diagnostics.rules.model.dtype_mismatch import DtypeMismatch

RULE = DtypeMismatch()
CRASH = CrashFacts("RuntimeError", "", (FrameFacts("train.py", 31, "<module>", yours=True),), live=False)


class TestFromCrash:
    def test_names_dtypes_and_tensors(self):
        tensors = {"input": "float64", "self.weight": "float32", "self.bias": "float32"}
        finding = RULE.from_crash(CRASH, DtypesDiffer("operands", "float64", "float32", None, tensors))
        assert finding.severity == "error"
        assert finding.message == (
            "One operation got tensors of float64 and float32. It takes one dtype and casts "
            "neither. In the failing "
            "function: input is float64; self.weight and self.bias are float32."
        )
        assert (finding.fix, *finding.alternatives) == (
            "NumPy computes in float64, and torch.from_numpy keeps that: inputs = inputs.float()",
            "arrays = arrays.astype(numpy.float32), before they become tensors",
        )
        assert str(finding.where) == "train.py:31"

    def test_says_what_an_old_message_leaves_open(self):
        assert RULE.from_crash(CRASH, DtypesDiffer("operands")).message == (
            "One operation got tensors of different dtypes. It takes one dtype and casts neither. Which tensors "
            "these are cannot be read from the traceback's text: pass the exception to diagnostics.explain."
        )

    def test_half_precision_gets_autocast(self):
        finding = RULE.from_crash(CRASH, DtypesDiffer("operands", "float32", "float16"))
        assert "torch.autocast" in finding.fix

    def test_a_loss_wants_class_indices(self):
        finding = RULE.from_crash(CRASH, DtypesDiffer("classes", "float32", "int64"))
        assert finding.message == (
            "The loss got a target of float32, where it takes class indices: one int64 number "
            "from 0 to C-1 for each "
            "example."
        )
        assert finding.fix == "target = target.long()  # class indices"

    def test_a_loss_wants_floating_point(self):
        finding = RULE.from_crash(CRASH, DtypesDiffer("target", "int64", "float32"))
        assert finding.message == "The loss got a target of int64, where it computes with floating point numbers."
        assert finding.fix == "target = target.float()"

    def test_a_result_that_does_not_fit_is_of_a_loss_or_in_place(self):
        finding = RULE.from_crash(CRASH, DtypesDiffer("result", "int64", "float32"))
        assert finding.message == (
            "An operation has a result of float32, which does not go into a tensor of int64: a loss over numbers "
            "got whole ones as target, or a tensor of whole numbers is changed in place."
        )

    def test_half_precision_on_a_cpu_gets_bfloat16(self):
        finding = RULE.from_crash(CRASH, DtypesDiffer("no kernel", "float16", None, "addmm_impl_cpu_"))
        assert finding.message == "addmm_impl_cpu_ is not implemented for float16 on this device."
        assert "bfloat16" in finding.fix

    def test_indices_integers_and_objects_say_what_is_wanted(self):
        kinds = ("indices", "integers", "objects")
        said = [RULE.from_crash(CRASH, DtypesDiffer(kind, "float32")).message for kind in kinds]
        assert [message.split(".")[0] for message in said] == [
            "An embedding, or a tensor that is indexed, got indices of float32",
            "An operation that needs floating point got float32",
            "A NumPy array of dtype object cannot become a tensor",
        ]
