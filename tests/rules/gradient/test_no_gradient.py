import pytest
import torch

import diagnostics
from diagnostics.facts.crash import CrashFacts, FrameFacts, NoPathToParameters
from diagnostics.facts.pipeline import GradientFacts, ModelFacts
from diagnostics.facts.where import Where
from diagnostics.rules.gradient.no_gradient import NoGradient

CRASH = CrashFacts(
    "RuntimeError",
    "element 0 of tensors does not require grad and does not have a grad_fn",
    (
        FrameFacts("train.py", 12, "<module>", "loss.backward()", yours=True),
        FrameFacts("torch/autograd/graph.py", 865, "_engine_run_backward"),
    ),
    live=True,
)


class TestFromGradients:
    def test_a_loss_that_reaches_no_parameter_is_an_error(self):
        finding = NoGradient().from_gradients(GradientFacts(False, {}, {"weight": 3000}, 3000))
        assert (finding.rule, finding.severity, finding.stage) == ("no-gradient", "error", "gradient")
        assert finding.message == (
            "The model has 3,000 trainable scalars, and the loss depends on none of them: somewhere between the "
            "model's output and the loss the path is cut. So no parameter gets a gradient, and training would "
            "leave the model exactly as it is."
        )
        assert finding.fix == (
            "compute the loss from the model's own output: no .detach(), .item(), .numpy() or argmax on the "
            "way, and no torch.no_grad() or torch.inference_mode() around it"
        )
        assert finding.evidence == {"connected": False, "num_trainable": 3000}

    def test_a_model_frozen_as_a_whole_is_told_apart(self):
        finding = NoGradient().from_gradients(GradientFacts(False, {}, {}, 0))
        assert finding.message == (
            "None of the model's parameters asks for a gradient: all of them are frozen. The loss has nothing "
            "to change, so training would leave the model exactly as it is."
        )
        assert finding.fix == (
            "for p in model.parameters(): p.requires_grad_(True)  # or only those that should learn"
        )

    def test_keras_is_told_in_its_own_words(self):
        model = ModelFacts("Sequential", "keras", 100, 0)
        frozen = NoGradient().from_gradients(GradientFacts(False, {}, {}, 0), model)
        assert frozen.fix == "model.trainable = True  # or only the layers that should learn; then compile again"
        cut = NoGradient().from_gradients(GradientFacts(False, {}, {"kernel": 100}, 100), model)
        assert cut.fix == (
            "compute the loss from the model's own output with keras.ops: no .numpy(), argmax or stop_gradient on "
            "the way"
        )

    def test_a_single_parameter_within_reach_is_enough(self):
        gradients = GradientFacts(True, {"head.bias": 0.0}, {"head.weight": 2998}, 3000)
        assert NoGradient().from_gradients(gradients) is None


class TestFromCrash:
    def test_it_says_what_was_missing_and_where(self):
        finding = NoGradient().from_crash(CRASH, NoPathToParameters())
        assert finding.message == (
            "backward() found nothing to differentiate: the loss was computed without a path to any parameter "
            "that asks for a gradient. The path is cut, or all is frozen."
        )
        assert finding.fix == (
            "compute the loss from the model's own output: no .detach(), .item(), .numpy() or argmax on the "
            "way, and no torch.no_grad() or torch.inference_mode() around it; and leave requires_grad=True on "
            "what should learn"
        )
        assert finding.where == Where("train.py", 12, "<module>")

    def test_it_speaks_keras_to_keras(self):
        frames = (CRASH.frames[0], FrameFacts("keras/src/optimizers/base_optimizer.py", 860, "apply"))
        crash = CrashFacts("ValueError", "No gradients provided for any variable.", frames, live=True)
        finding = NoGradient().from_crash(crash, NoPathToParameters())
        assert finding.message == (
            "No variable got a gradient: the loss was computed without a path to any variable that should learn. "
            "Somewhere between the model's output and the loss the path is cut."
        )
        assert finding.fix == (
            "compute the loss from the model's own output with keras.ops: no .numpy(), argmax or stop_gradient on "
            "the way"
        )


class TestAdapters:
    """A model with PEFT's adapters: its base is frozen on purpose, and must stay so."""

    MODEL = ModelFacts("PeftModel", "transformers", 1000, 0, adapters=True)

    def test_all_frozen_is_told_how_the_adapters_learn(self):
        fix = NoGradient().from_gradients(GradientFacts(False, {}, {}, 0), self.MODEL).fix
        assert "is_trainable=True" in fix
        assert "requires_grad" not in fix

    def test_a_cut_path_is_told_of_gradient_checkpointing(self):
        fix = NoGradient().from_gradients(GradientFacts(False, {}, {"lora_A": 8}, 8), self.MODEL).fix
        assert "model.enable_input_require_grads()" in fix

    def test_a_crash_with_such_a_model_in_its_frames(self):
        fix = NoGradient().from_crash(CRASH, NoPathToParameters(adapters=True)).fix
        assert "model.enable_input_require_grads()" in fix
        assert "requires_grad=True" not in fix

    def test_the_frames_of_a_crash_show_it(self):
        model = torch.nn.Linear(2, 2).requires_grad_(False)
        for adapters in (False, True):
            if adapters:
                model.peft_config = {"default": None}
            with pytest.raises(RuntimeError, match="does not require grad") as crash:
                model(torch.ones(1, 2)).sum().backward()
            (finding,) = diagnostics.explain(crash.value).findings
            assert ("enable_input_require_grads" in finding.fix) == adapters
