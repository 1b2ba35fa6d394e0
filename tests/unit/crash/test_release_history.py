"""The release that removed or introduced an argument or a name is named, with what replaces it."""

import pytest

from diagnostics.api.explain import explain
from diagnostics.collectors.crash.versions import _changes

FRAME = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 8, in main\n    {line}\n'
PASSED_ON = (
    '  File "/opt/lib/python3.7/site-packages/pytorch_lightning/utilities/argparse.py", line 340, in insert_env\n'
    "    return fn(self, **kwargs)\n"
)
REFUSED = "TypeError: {call}() got an unexpected keyword argument '{name}'\n"


@pytest.mark.parametrize(
    ("line", "between", "call", "name", "said", "fix"),
    [
        (
            "trainer = pl.Trainer(",
            PASSED_ON,
            "Trainer.__init__",
            "gpus",
            "1.9 still has it, but 2.0",
            "Trainer(acc",
        ),
        (
            "every=1)",
            PASSED_ON,
            "__init__",
            "weights_save_path",
            "1.7 still has it, but 1.8",
            "Trainer(default_root",
        ),
        (
            "t = Trainer(max_nb_epochs=3)",
            "",
            "__init__",
            "max_nb_epochs",
            "0.7 still has it",
            "Trainer(max_epochs",
        ),
        (
            "pl.Trainer().fit(m)",
            "",
            "Trainer.fit",
            "train_dataloader",
            "1.5 still has it",
            "trainer.fit(model, train_",
        ),
        (
            "DPOTrainer(m, beta=1)",
            "",
            "DPOTrainer.__init__",
            "beta",
            "trl 0.12 still",
            "DPOTrainer(args=DPOConfig(",
        ),
        (
            "TrainingArguments(bf16=1)",
            "",
            "__init__",
            "bf16",
            "too old",
            'python -m pip install -U "transformers>=',
        ),
        ("OneHotEncoder(sparse=0)", "", "OneHotEncoder.__init__", "sparse", "1.3 still", "OneHotEncoder(sparse_"),
        ("mean_squared_error(y, p)", "", "mean_squared_error", "squared", "1.5 still has it", "root_mean_squ"),
        ("model.fit(g, workers=4)", "", "TensorFlowTrainer.fit", "workers", "2.15 still", "keras.utils.PyDataset"),
    ],
)
def test_names_release_and_replacement(line, between, call, name, said, fix):
    text = FRAME.format(line=line) + between + REFUSED.format(call=call, name=name)
    (finding,) = explain(text).findings
    assert finding.rule == "installation-mismatch"
    assert said in finding.message
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    ("line", "call", "name"),
    [
        ("brew(gpus=2)", "brew", "gpus"),
        ("Pot(gpus=2)", "Pot.__init__", "gpus"),
        ("pot.fit(x)", "fit", "ckpt_path"),
    ],
)
def test_class_of_the_users_has_no_history(line, call, name):
    assert explain(FRAME.format(line=line) + REFUSED.format(call=call, name=name)).findings == ()


def test_no_argument_has_two_histories():
    changes = [(change["package"], change["call"], change["name"]) for change in _changes()]
    assert len(changes) > 200
    assert [change for change in changes if changes.count(change) > 1] == []


@pytest.mark.parametrize(
    ("said", "version", "fix"),
    [
        ("AttributeError: type object 'Trainer' has no attribute 'from_argparse_args'", "2.0", "Trainer(**vars("),
        ("ModuleNotFoundError: No module named 'pytorch_lightning.metrics.functional'", "1.5", "torchmetrics"),
        (
            "ImportError: cannot import name 'DDPPlugin' from 'pytorch_lightning.plugins' (a)",
            "1.8",
            "Trainer(strategy",
        ),
    ],
)
def test_names_the_release_without_a_name(said, version, fix):
    (finding,) = explain(FRAME.format(line="from a import b") + said).findings
    assert f"but {version} does not" in finding.message
    assert finding.fix.startswith(fix)
