import diagnostics
from diagnostics.facts.crash import CrashFacts, DevicesDiffer, FrameFacts
from diagnostics.rules.device.device_mismatch import DeviceMismatch

RULE = DeviceMismatch()
FRAMES = (FrameFacts("train.py", 31, "<module>", yours=True),)
MESSAGE = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
LIVE = CrashFacts("RuntimeError", MESSAGE, FRAMES, live=True)
TEXT = CrashFacts("RuntimeError", MESSAGE, FRAMES, live=False)
FIX = (
    "move the batch to the model's device: x, y = x.to(device), y.to(device), with device = "
    "next(model.parameters()).device"
)
FIX_OF_MODEL = "move the model to the batch's device: model.to(...), before the optimizer is created"


class TestFromCrash:
    def test_names_the_tensor_that_was_left_behind(self):
        tensors = {"input": "cpu", "self.weight": "cuda:0", "self.bias": "cuda:0"}
        finding = RULE.from_crash(LIVE, DevicesDiffer(("cuda:0", "cpu"), tensors))
        assert finding.severity == "error"
        assert finding.evidence == {"devices": ["cuda:0", "cpu"], "tensors": tensors}
        assert str(finding.where) == "train.py:31"

    def test_moves_the_model_if_that_was_left_behind(self):
        tensors = {"input": "cuda:0", "self.weight": "cpu", "self.bias": "cpu"}
        symptom = DevicesDiffer(("cuda:0", "cpu"), tensors, registered=("self.weight", "self.bias"))
        assert RULE.from_crash(LIVE, symptom).fix == FIX_OF_MODEL

    def test_moves_an_attribute_that_belongs_to_no_module(self):
        tensors = {"logits": "cuda:0", "self.class_weights": "cpu"}
        finding = RULE.from_crash(LIVE, DevicesDiffer(("cuda:0", "cpu"), tensors))
        assert finding.fix.startswith('self.class_weights = self.class_weights.to("cuda:0")')

    def test_moves_the_weights_of_a_loss_and_not_the_model(self):
        loss = FrameFacts("torch/nn/functional.py", 3500, "cross_entropy")
        crash = CrashFacts("RuntimeError", MESSAGE, (*FRAMES, loss), live=True)
        tensors = {"input": "cuda:0", "target": "cuda:0", "weight": "cpu"}
        finding = RULE.from_crash(crash, DevicesDiffer(("cuda:0", "cpu"), tensors, registered=("weight",)))
        assert finding.fix == 'weight = weight.to("cuda:0"), where your code creates it'
        assert finding.alternatives[0].startswith("criterion.to(device)")

    def test_moves_a_whole_batch_that_was_left_behind(self):
        tensors = {"input": "cpu", "target": "cpu", "weight": "cuda:0"}
        assert RULE.from_crash(LIVE, DevicesDiffer(("cuda:0", "cpu"), tensors)).severity == "error"

    def test_takes_the_devices_from_the_tensors_and_names_six_of_them(self):
        tensors = {**{f"x{i}": "cuda:0" for i in range(8)}, "y": "cuda:1"}
        finding = RULE.from_crash(LIVE, DevicesDiffer((), tensors))
        assert finding.evidence["tensors"] == tensors

    def test_names_the_argument_that_the_message_names(self):
        got = "but got {} is on {}, different from other tensors on {} (when checking argument in method w)"
        text = 'File "/lib/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(x)\n'
        for name, device, other, what, fix in (
            ("mat1", "cpu", "cuda:0", "mat1, the layer's input, is on cpu", FIX),
            ("mat2", "cpu", "cuda:0", "mat2, the layer's weight, is on cpu", FIX_OF_MODEL),
            ("mat1", "cuda:0", "cpu", "mat1, the layer's input, is on cuda:0", FIX_OF_MODEL),
            ("weight", "cuda:0", "cpu", "weight is on cuda:0", FIX),
        ):
            said = (
                f"RuntimeError: Expected all tensors to be on the same device, {got.format(name, device, other)}"
            )
            (finding,) = diagnostics.explain(f"Traceback (most recent call last):\n  {text}{said}").findings
            assert finding.message == (
                f"An operation got tensors on {device} and {other}: its argument {what}, and the other "
                f"arguments are on {other}. All tensors in an operation must be on the same device."
            )
            assert finding.fix == fix

    def test_says_what_the_text_leaves_open(self):
        assert RULE.from_crash(TEXT, DevicesDiffer(("cuda:0", "cpu"))).severity == "error"

    def test_says_what_the_frames_left_open(self):
        assert RULE.from_crash(LIVE, DevicesDiffer(())).severity == "error"

    def test_says_where_the_state_of_an_optimizer_lies(self):
        step = FrameFacts("torch/optim/adam.py", 93, "step")
        crash = CrashFacts("RuntimeError", MESSAGE, (*FRAMES, step), live=False)
        assert RULE.from_crash(crash, DevicesDiffer(("cuda:0", "cpu"))).severity == "error"

    def test_a_closure_inside_of_the_step_is_the_users(self):
        inside = (
            FrameFacts("torch/optim/lbfgs.py", 330, "step"),
            FrameFacts("train.py", 20, "closure", yours=True),
        )
        crash = CrashFacts("RuntimeError", MESSAGE, (*FRAMES, *inside), live=False)
        assert RULE.from_crash(crash, DevicesDiffer(("cuda:0", "cpu"))).severity == "error"


def test_of_two_gpus_the_fixed_one_is_told():
    said = (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {} and {}!"
    )
    for devices in (("cuda:1", "cuda:0"), ("cuda:0", "cpu")):
        assert [finding.rule for finding in diagnostics.explain(said.format(*devices)).findings] == [
            "device-mismatch"
        ]
