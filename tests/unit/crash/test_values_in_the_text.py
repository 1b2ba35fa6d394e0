"""What a text shows decides: sizes, names and lines beside the message, not only the message's wording."""

import pytest

from diagnostics.api.explain import explain

HEAD = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 8, in {function}\n    {line}\n'
LIBRARY = '  File "/opt/lib/python3.11/site-packages/{file}", line 90, in {function}\n    {line}\n'


def only(text):
    (finding,) = explain(text).findings
    return finding


def pasted(error, line="run(x)", function="main", *inner):
    frames = "".join(LIBRARY.format(file=file, function=name, line=code) for file, name, code in inner)
    return f"{HEAD.format(function=function, line=line)}{frames}{error}\n"


class TestCheckpoint:
    MESSAGE = (
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: {missing}. "
        "\n\tUnexpected key(s) in state_dict: {unexpected}. "
    )

    @pytest.mark.parametrize(
        ("unexpected", "fix"),
        [
            ('"epoch", "teacher", "student"', "model.load_state_dict(checkpoint['teacher'])"),
            ('"network", "iteration", "run_name"', "model.load_state_dict(checkpoint['network'])"),
            ('"step", "my_weights"', "run print({key: type(value)"),
        ],
    )
    def test_weights_under_a_name_are_taken_out(self, unexpected, fix):
        message = self.MESSAGE.format(missing='"stem.weight", "head.bias"', unexpected=unexpected)
        finding = only(pasted(message))
        assert "is not a state dict but contains one" in finding.message
        assert finding.fix.startswith(fix)

    def test_a_parameter_of_the_model_is_not_a_container(self):
        message = self.MESSAGE.format(missing='"stem.weight"', unexpected='"pos_embed", "cls_token"')
        assert "different architecture" in only(pasted(message)).message

    @pytest.mark.parametrize(("missing", "offered"), [('"fc.weight", "fc.bias"', True), ('"a.w", "b.w"', False)])
    def test_strict_is_only_offered_for_one_missing_part(self, missing, offered):
        finding = only(pasted(self.MESSAGE.format(missing=missing, unexpected='"old.w1", "old.w2"')))
        assert any("strict=False" in fix for fix in finding.alternatives) is offered

    def test_ranks_of_adapters_are_compared(self):
        finding = only(
            pasted(
                "RuntimeError: Error(s) in loading state_dict for PeftModel:\n\tsize mismatch for "
                "base.q_proj.lora_A.default.weight: copying a param with shape torch.Size([64, 512]) from "
                "checkpoint, the shape in current model is torch.Size([8, 512])."
            )
        )
        assert "lora_A has 64 rows in the file and 8 in the model" in finding.message
        assert "adapter_config.json" in finding.fix

    @pytest.mark.parametrize(
        ("file", "function", "line", "key"),
        [
            ("accelerate/accelerator.py", "load_state", 'self.epoch = overrides["epoch"]', "epoch"),
            ("keras/engine/topology.py", "from_config", "kind = config.pop('mask_type')", "mask_type"),
            ("torch/optim/optimizer.py", "__setstate__", 'groups = state["param_groups"]', "param_groups"),
        ],
    )
    def test_a_saved_state_lacks_an_entry(self, file, function, line, key):
        finding = only(pasted(f"KeyError: '{key}'", "load(folder)", "main", (file, function, line)))
        assert finding.rule == "unreadable-checkpoint"
        assert f"has no '{key}'" in finding.message

    def test_an_entry_of_a_batch_is_not_saved_state(self):
        inner = ("accelerate/utils/operations.py", "gather", 'x = batch["labels"]')
        assert [f.rule for f in explain(pasted("KeyError: 'labels'", "g(b)", "main", inner)).findings] == []

    @pytest.mark.parametrize("call", ["torch.load(path)", "pickle.load(file)", "np.load(path, allow_pickle=True)"])
    def test_a_file_is_taken_apart(self, call):
        finding = only(pasted("ValueError: too many values to unpack (expected 2)", f"model, step = {call}"))
        assert finding.message.startswith(f"{call.partition('(')[0]} returned what is in the file")


class TestShapes:
    def test_height_and_width_are_swapped(self):
        said = "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry 3"
        swapped = only(pasted(f"RuntimeError: {said.format([3, 480, 640], [3, 640, 480])}"))
        other = only(pasted(f"RuntimeError: {said.format([3, 480, 640], [3, 320, 480])}"))
        assert "height and width, are swapped" in swapped.message
        assert "transpose" in swapped.fix
        assert "swapped" not in other.message

    def test_an_empty_array_is_named(self):
        said = "ValueError: Data cardinality is ambiguous:\n  x sizes: {}\n  y sizes: {}\nMake sure all arrays"
        call = "model.fit(a, b, validation_data=(c, d))"
        finding = only(pasted(said.format(0, 80), call))
        assert finding.message.startswith("x is empty")
        assert "validation" in finding.message
        assert only(pasted(said.format(80, 0), "model.fit(a, b)")).message.startswith("y is empty")
        assert "empty" not in only(pasted(said.format(70, 80), call)).message

    def test_flattened_features_depend_on_the_size_of_images(self):
        finding = only(pasted("RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x18432 and 2048x10)"))
        assert finding.fix.startswith("use nn.Linear(18432, 10)")
        assert "resize them" in finding.alternatives[0]
        assert "AdaptiveAvgPool2d" in finding.alternatives[1]


class TestMemory:
    FULL = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB"

    @pytest.mark.parametrize("function", ["evaluate", "val.validate_epoch", "predict", "run_inference"])
    def test_an_evaluation_of_your_own_needs_no_grad(self, function):
        finding = only(pasted(self.FULL, "out = model(x)", function))
        assert finding.fix.startswith("decorate the function with @torch.no_grad()")

    @pytest.mark.parametrize("function", ["train", "test_training", "evaluate_later_on"])
    def test_a_training_needs_a_smaller_batch(self, function):
        assert only(pasted(self.FULL, "out = model(x)", function)).fix.startswith("halve the batch size")

    @pytest.mark.parametrize(
        ("bar", "loading"),
        [
            ("Loading checkpoint shards:  50%|█████     | 1/2 [00:09<00:09]", True),
            ("Loading weights:  12%|█▎        | 30/290 [00:01<00:09]", True),
            ("Loading checkpoint shards: 100%|██████████| 2/2 [00:09]\n  3%|▎     | 30/900 [00:09]", False),
        ],
    )
    def test_a_process_that_is_killed_while_loading(self, bar, loading):
        killed = "torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 7)"
        assert ("while it was loading" in only(f"{bar}\n{killed}").message) is loading


class TestRefused:
    def test_options_that_exclude_each_other(self):
        inner = ("trl/trainer/own.py", "__init__", "raise ValueError(")
        error = "ValueError: gradient packing cannot be combined with liger mode"
        finding = only(pasted(error, "Own(packing=True)", "main", inner))
        assert not any("detached" in fix for fix in (finding.fix, *finding.alternatives))
        call = ("accelerate/own.py", "prepare", "raise ValueError(")
        text = pasted("ValueError: gradient clipping is incompatible with DDP", "prepare(m)", "main", call)
        assert only(text).fix.startswith("turn off one of the options")

    def test_a_call_without_arguments_has_no_wrong_argument(self):
        inner = ("torch/optim/swa_utils.py", "step", "raise ValueError(")
        error = "ValueError: the number of cycles specified is used up"
        finding = only(pasted(error, "scheduler.step()", "main", inner))
        assert finding.fix.startswith("look where scheduler is created")
        with_argument = only(pasted(error, "scheduler.step(loss)", "main", inner))
        assert with_argument.fix.startswith("compare what that line passes")


@pytest.mark.parametrize("name", ["Session", "get_variable", "_api.v2.train.AdamOptimizer", "contrib"])
def test_names_of_tensorflow_1(name):
    owner, _, last = f"tensorflow.{name}".rpartition(".")
    finding = only(pasted(f"AttributeError: module '{owner}' has no attribute '{last}'", f"tf.{name}()"))
    assert "written for TensorFlow 1" in finding.message
    assert ("compat.v1" in finding.fix) is (name != "contrib")
