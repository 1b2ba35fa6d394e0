"""Sentences that two causes share, told apart by the frames of the traceback, or by the names in them."""

import pytest

from diagnostics.api.explain import explain

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    main()
{frames}{error}
"""


def told(error, *frames):
    """Return what is said of an error whose last frames are these, as (file, function)."""
    lines = "".join(f'  File "{file}", line 90, in {function}\n    run(x)\n' for file, function in frames)
    (finding,) = explain(TRACEBACK.format(frames=lines, error=error)).findings
    return finding


class TestSequential:
    MODULE = ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", "__getattr__")

    def test_with_a_frame_of_torch_it_is_pytorchs(self):
        finding = told("AttributeError: 'Sequential' object has no attribute 'in_features'", self.MODULE)
        assert finding.message.startswith("torch.nn.Sequential has no attribute in_features")
        assert "Keras" not in f"{finding.message}{finding.fix}"

    def test_a_copy_is_asked_of_it_where_its_weights_are_loaded(self):
        assert told("AttributeError: 'Sequential' object has no attribute 'copy'").rule == "unreadable-checkpoint"

    @pytest.mark.parametrize("name", ["fit", "compile", "summary"])
    def test_what_keras_has_is_missed_in_pytorchs(self, name):
        finding = told(f"AttributeError: 'Sequential' object has no attribute '{name}'")
        assert finding.message.startswith("This is torch.nn.Sequential")

    @pytest.mark.parametrize("name", ["parameters", "state_dict", "to"])
    def test_what_pytorch_has_is_missed_in_keras(self, name):
        finding = told(f"AttributeError: 'Sequential' object has no attribute '{name}'")
        assert finding.message.startswith("This is keras.Sequential")


class TestResultType:
    ERROR = "RuntimeError: result type Float can't be cast to the desired output type Long"

    def test_within_a_loss_it_is_the_target(self):
        loss = (
            "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py",
            "binary_cross_entropy_with_logits",
        )
        assert told(self.ERROR, loss).message.startswith("The loss got an int64 target")

    def test_elsewhere_it_may_be_a_change_in_place(self):
        assert "modified in place" in told(self.ERROR).message


class TestNameOfTheScript:
    ERROR = "AttributeError: Can't get attribute 'Net' on <module '__main__' from 'evaluate.py'>"

    def test_where_a_file_is_read_it_is_the_checkpoint(self):
        reads = ("/opt/venv/lib/python3.11/site-packages/torch/serialization.py", "load")
        assert told(self.ERROR, reads).rule == "unreadable-checkpoint"

    def test_where_a_process_starts_it_is_the_worker(self):
        starts = ("/usr/lib/python3.10/multiprocessing/spawn.py", "_main")
        assert told(self.ERROR, starts).rule == "worker-failure"

    def test_the_message_alone_tells_both(self):
        (finding,) = explain(self.ERROR).findings
        assert "torch.save(model)" in finding.message
        assert "a loader's spawned worker" in finding.message


@pytest.mark.parametrize(
    "operation", ["'MatMul' (op: 'MatMul')", "'{{node MatMul}} = MatMul[T=DT_FLOAT](x, w)'"], ids=["old", "new"]
)
def test_sizes_of_a_product_are_not_taken_for_element_wise(operation):
    error = (
        f"ValueError: Dimensions must be equal, but are 784 and 500 for {operation} with input shapes: "
        "[?,784], [500,10]."
    )
    assert told(error).message == (
        "Cannot multiply matrices of shapes (None, 784) and (500, 10): the first has 784 columns, but the second "
        "has 500 rows."
    )


class TestConfigurations:
    @pytest.mark.parametrize("owner", ["Config", "TrainConfig", "EvalConfig", "Namespace"])
    def test_a_configuration_of_ones_own_is_not_of_transformers(self, owner):
        report = explain(f"AttributeError: '{owner}' object has no attribute 'early_stopping'")
        assert report.findings == ()


class TestTrainersArguments:
    ERROR = "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'"
    TRL = ("/opt/venv/lib/python3.10/site-packages/trl/trainer/sft_trainer.py", "__init__")

    def test_trl_hands_it_on_and_is_to_be_updated(self):
        finding = told(self.ERROR, self.TRL)
        assert finding.rule == "installation-mismatch"
        assert finding.fix.startswith("python -m pip install -U trl")


class TestNotebooks:
    USED = "you need to avoid running any instruction using `torch.cuda` in any cell."

    @pytest.mark.parametrize("said", [USED, "the `Accelerator` should only be initialized inside your function."])
    def test_accelerates_launcher_is_not_sent_to_lightnings_strategy(self, said):
        error = f"ValueError: To launch a multi-GPU training from your notebook, {said}"
        finding = told(
            error, ("/opt/venv/lib/python3.10/site-packages/accelerate/launchers.py", "notebook_launcher")
        )
        assert finding.rule == "worker-failure"
        assert "ddp_notebook" not in f"{finding.message}{finding.fix}{finding.alternatives}"

    def test_who_has_ddp_notebook_is_not_told_to_take_it(self):
        finding = told("RuntimeError: Lightning can't create new processes if CUDA is already initialized.")
        assert finding.fix.startswith("restart the kernel, and do not use the GPU before trainer.fit")


class TestDatasets:
    def test_a_script_is_not_run_by_datasets_4_whatever_is_trusted(self):
        finding = told("RuntimeError: Dataset scripts are no longer supported, but found pears.py")
        assert finding.fix.startswith('pip install "datasets<4"')

    @pytest.mark.parametrize("types", ["string to int64", "struct<a: int64> to null_count"])
    def test_other_types_differ_between_rows_or_files(self, types):
        assert "has an additional field" in told(f"TypeError: Couldn't cast array of type {types}").message

    def test_a_path_of_ones_own_that_is_none_is_no_vocabulary(self):
        report = explain(
            TRACEBACK.format(frames="", error="TypeError: expected str, bytes or os.PathLike object, not NoneType")
        )
        assert report.findings == ()


class TestIndexInALibrary:
    LIST = "IndexError: list index out of range"

    def test_a_loader_of_deepspeed_is_no_zero(self):
        loader = ("/opt/venv/lib/python3.10/site-packages/deepspeed/runtime/dataloader.py", "__next__")
        text = TRACEBACK.format(frames=f'  File "{loader[0]}", line 9, in x\n    y\n', error=self.LIST)
        assert explain(text).findings == ()


class TestRowsForABatch:
    ERROR = "TypeError: list indices must be integers or slices, not str"

    @pytest.mark.parametrize(
        "file",
        [
            "/opt/venv/lib/python3.10/site-packages/trl/trainer/grpo_trainer.py",
            "/content/unsloth_compiled_cache/UnslothGRPOTrainer.py",
            r"C:\work\unsloth_compiled_cache\UnslothSFTTrainer.py",
        ],
    )
    def test_trls_own_line_is_of_another_release(self, file):
        assert told(self.ERROR, (file, "compute_loss")).rule == "installation-mismatch"

    def test_a_reward_of_ones_own_is_ones_own(self):
        trl = '  File "/opt/venv/site-packages/trl/trainer/grpo_trainer.py", line 9, in score\n    f(x)\n'
        own = '  File "/home/ada/project/rewards.py", line 3, in reward\n    return x["text"]\n'
        assert explain(TRACEBACK.format(frames=trl + own, error=self.ERROR)).findings == ()


class TestPickled:
    LOCK = "TypeError: cannot pickle '_thread.lock' object"

    @pytest.mark.parametrize(
        ("file", "said"),
        [
            ("/opt/venv/lib/python3.10/site-packages/lightning/pytorch/core/saving.py", "save_hyperparameters"),
            ("/usr/lib/python3.10/copy.py", "copy.deepcopy"),
            (r"C:\Python310\lib\copy.py", "copy.deepcopy"),
            ("/opt/venv/lib/python3.10/site-packages/torch/serialization.py", "state_dict()"),
            ("/opt/venv/lib/python3.10/site-packages/dill/_dill.py", "num_proc"),
        ],
    )
    def test_the_file_tells_what_for(self, file, said):
        finding = told(self.LOCK, (file, "save"))
        assert finding.rule == "refused-call"
        assert said in f"{finding.message}{finding.fix}"

    def test_a_process_that_starts_is_the_loaders(self):
        started = ("/usr/lib/python3.10/multiprocessing/popen_spawn_posix.py", "_launch")
        copied = ("/usr/lib/python3.10/copy.py", "deepcopy")
        assert told(self.LOCK, copied, started).rule == "worker-failure"


def test_another_argument_of_forward_is_still_a_column():
    (finding,) = explain("TypeError: GPT2Model.forward() got an unexpected keyword argument 'labels'").findings
    assert finding.rule == "mismatched-call"
