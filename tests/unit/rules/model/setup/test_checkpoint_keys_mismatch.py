import pytest

import diagnostics
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import LoadedKeys, ObjectLedger
from diagnostics.facts.crash import CheckpointKeysDiffer, CrashFacts
from diagnostics.facts.where import Where
from diagnostics.rules.model.setup.checkpoint_keys_mismatch import CheckpointKeysMismatch, inserted_part, prefix_of

RULE = CheckpointKeysMismatch()
CRASH = CrashFacts("RuntimeError", "", (), live=False)
KEYS = ("body.weight", "body.bias", "head.weight", "head.bias")


def differing(missing=(), unexpected=()):
    return CheckpointKeysDiffer("Net", tuple(missing), tuple(unexpected))


class TestPrefix:
    def test_of_the_checkpoint_and_of_the_model(self):
        wrapped = tuple(f"module.{key}" for key in KEYS)
        assert prefix_of(differing(KEYS, wrapped)) == "module."
        assert prefix_of(differing(wrapped, KEYS)) == "-module."
        assert prefix_of(differing(KEYS, [f"backbone.net.{key}" for key in KEYS])) == "backbone.net."

    def test_there_is_none_if_few_keys_would_match(self):
        assert prefix_of(differing(KEYS, ["encoder.weight", "encoder.bias", "decoder.0", "decoder.1"])) is None
        assert prefix_of(differing(KEYS[2:])) is None

    def test_of_a_part_counts_where_loading_failed(self):
        parts = [*(f"encoder.{key}" for key in KEYS), *(f"classifier.{n}.weight" for n in range(8))]
        assert prefix_of(differing(KEYS, parts)) is None
        assert prefix_of(differing(KEYS, parts), in_part=True) == "encoder."


class TestFromCrash:
    def test_names_the_part_that_fits(self):
        parts = [*(f"encoder.{key}" for key in KEYS), *(f"classifier.{n}.weight" for n in range(8))]
        assert RULE.from_crash(CRASH, differing(KEYS, parts)).severity == "error"

    def test_strips_the_prefix_of_a_wrapper(self):
        finding = RULE.from_crash(CRASH, differing(KEYS, [f"module.{key}" for key in KEYS]))
        assert finding.evidence["prefix"] == "module."

    def test_loads_into_the_inner_model(self):
        assert RULE.from_crash(CRASH, differing([f"_orig_mod.{key}" for key in KEYS], KEYS)).severity == "error"

    def test_opens_a_checkpoint_that_holds_more(self):
        assert (
            RULE.from_crash(CRASH, differing(KEYS, ["epoch", "model_state_dict", "optimizer_state_dict"])).severity
            == "error"
        )

    def test_names_the_layers_that_differ(self):
        assert RULE.from_crash(CRASH, differing(KEYS[2:], ["classifier.weight"])).severity == "error"

    def test_names_that_differ_by_a_number_stand_at_another_place(self):
        missing = ("layers.3.down.weight", "layers.3.down.bias")
        unexpected = ("layers.0.down.weight", "layers.0.down.bias")
        assert RULE.from_crash(CRASH, differing(missing, unexpected)).severity == "error"

    def test_one_layer_where_the_checkpoint_has_several(self):
        unexpected = ("embed.proj.0.weight", "embed.proj.1.bias", "embed.proj.3.weight")
        assert (
            RULE.from_crash(CRASH, differing(("embed.proj.weight", "embed.proj.bias"), unexpected)).severity
            == "error"
        )

    def test_other_layers_are_another_architecture(self):
        for missing, unexpected in [(("a.0.weight",), ("b.0.weight",)), (("a.weight",), ("a.0.weight", "c.bias"))]:
            assert RULE.from_crash(CRASH, differing(missing, unexpected)).severity == "error"


class TestLoad:
    KEYS = ("backbone.0.weight", "backbone.0.bias", "backbone.2.weight", "backbone.2.bias", "fc.weight", "fc.bias")

    def judge(self, missing, unexpected, loaded):
        facts = LoadedKeys(
            "Classifier", len(missing) + loaded, missing, unexpected, loaded, Where("t.py", 9, "main")
        )
        return CheckpointKeysMismatch().from_load(facts)

    def test_of_a_wrapped_model(self):
        finding = self.judge(self.KEYS, tuple(f"module.{key}" for key in self.KEYS[:4]), 0)
        assert (finding.severity, str(finding.where)) == ("warning", "t.py:9 in main")

    def test_of_a_part_of_another_name(self):
        keys = ("0.weight", "0.bias", "2.weight", "2.bias")
        model = (*(f"backbone.{key}" for key in keys), "fc.weight", "fc.bias")
        finding = self.judge(model, (*(f"encoder.{key}" for key in keys), "projector.weight"), 0)
        assert finding.fix == (
            "state = {key.replace('encoder.', 'backbone.', 1): value for key, value in state.items()}"
        )

    def test_of_an_adapter_without_its_name(self):
        layers = [f"model.layers.{n}.q_proj" for n in range(3)]
        model = (
            *(f"{layer}.lora_A.default.weight" for layer in layers),
            *(f"{layer}.base_layer.weight" for layer in layers),
        )
        symptom = CheckpointKeysDiffer("Peft", model, tuple(f"{layer}.lora_A.weight" for layer in layers))
        assert inserted_part(symptom) == "default"
        facts = LoadedKeys("Peft", len(model), model, symptom.unexpected, 0, trained=False)
        finding = CheckpointKeysMismatch().from_load(facts)
        assert (finding.severity, finding.evidence["loaded"]) == ("warning", 0)
        assert "set_peft_model_state_dict" in finding.fix

    def test_of_a_compiled_part(self):
        keys = ("weight", "bias")
        state = tuple(f"net.encoder._orig_mod.{key}" for key in keys)
        model = (*(f"net.encoder.{key}" for key in keys), "head.weight")
        assert inserted_part(CheckpointKeysDiffer("Net", model, state)) == "-_orig_mod"
        assert self.judge(model, state, 0).severity == "warning"

    def test_other_layers_have_no_inserted_part(self):
        for missing, unexpected in [
            (("a.0.weight", "a.0.bias"), ("b.1.weight", "b.1.bias")),
            (("a.b.weight",), ("a.weight",)),
            (("fc.weight", "fc.bias"), ()),
        ]:
            assert inserted_part(CheckpointKeysDiffer("Net", missing, unexpected)) is None

    def test_of_another_head_is_meant(self):
        assert self.judge(("fc.weight", "fc.bias"), ("head.weight", "head.bias"), 4) is None

    def test_of_a_part_of_a_larger_checkpoint_is_meant(self):
        assert self.judge(("fc.weight",), tuple(f"decoder.{n}" for n in range(40)), 5) is None


def test_of_a_message_that_was_shortened_the_other_half_is_told_as_open():
    text = (
        "RuntimeError: Error(s) in loading state_dict for Attack:\n"
        '\tMissing key(s) in state_dict: "net.conv1.weight", "net.conv2.weight"{}\n'
    )
    for end in (",.......", ". "):
        (finding,) = diagnostics.explain(text.format(end)).findings
        assert finding.rule == "checkpoint-keys-mismatch"


class TestSavedInPart:
    @pytest.mark.parametrize(("name", "fixes"), [("PeftModel", 2), ("PumpNet", 1)])
    def test_warns_of_trained_weights_that_the_served_model_lacks(self, name, fixes):
        finding = RULE.from_objects(ObjectLedger(name, lost={"base.classifier.weight": 384}, restored=26))
        assert (finding.severity, 1 + len(finding.alternatives)) == ("warning", fixes)
        assert "modules_to_save=['classifier']" in finding.fix or fixes == 1
        assert finding.evidence["lost"] == {"base.classifier.weight": 384}

    def test_needs_weights_that_were_lost(self):
        with pytest.raises(NotApplicable):
            RULE.from_objects(ObjectLedger("Net", untrained_rows=300))
