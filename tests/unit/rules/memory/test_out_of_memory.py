import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.memory import ModelMemory, OutOfMemoryCrash
from diagnostics.facts.gpu import Holder
from diagnostics.rules.memory.out_of_memory import OutOfMemory

RULE = OutOfMemory()
MIB, GIB = 2**20, 2**30
FRAMES = (FrameFacts("train.py", 31, "<module>", yours=True),)
LIVE = CrashFacts("OutOfMemoryError", "CUDA out of memory.", FRAMES, live=True)
TEXT = CrashFacts("OutOfMemoryError", "CUDA out of memory.", FRAMES, live=False)
ADAM = ModelMemory(
    model="DistilBertForSequenceClassification",
    weights=256 * MIB,
    gradients=256 * MIB,
    optimizer="AdamW",
    optimizer_state=512 * MIB,
    present=GIB,
    batch_rows=256,
)


class TestFromCrash:
    def test_adds_up_what_the_model_takes_and_what_the_batch_added(self):
        symptom = OutOfMemoryCrash(
            "PyTorch", "GPU 0", 512 * MIB, 8 * GIB, 100 * MIB, 7 * GIB, 7 * GIB + 100 * MIB, others=(), need=ADAM
        )
        finding = RULE.from_crash(LIVE, symptom)
        assert finding.severity == "error"
        assert finding.evidence == {
            "framework": "PyTorch",
            "device": "GPU 0",
            "tried_bytes": 512 * MIB,
            "capacity_bytes": 8 * GIB,
            "free_bytes": 100 * MIB,
            "allocated_bytes": 7 * GIB,
            "reserved_bytes": 7 * GIB + 100 * MIB,
            "killed": False,
            "weights_bytes": 256 * MIB,
            "gradients_bytes": 256 * MIB,
            "optimizer_state_bytes": 512 * MIB,
            "batch_rows": 256,
        }
        assert str(finding.where) == "train.py:31"

    def test_says_what_the_text_holds_and_no_more(self):
        assert RULE.from_crash(TEXT, OutOfMemoryCrash("PyTorch", "CPU", 1_600_000_000)).severity == "error"

    def test_says_that_no_batch_helps_a_model_that_fills_the_memory_by_itself(self):
        assert (
            RULE.from_crash(LIVE, OutOfMemoryCrash("PyTorch", "GPU 0", MIB, GIB + 50 * MIB, 0, need=ADAM)).severity
            == "error"
        )

    def test_knows_memory_that_is_there_in_pieces(self):
        symptom = OutOfMemoryCrash("PyTorch", "GPU 0", 100 * MIB, 8 * GIB, 10 * MIB, 6 * GIB, 7 * GIB, others=())
        assert RULE.from_crash(TEXT, symptom).severity == "error"

    def test_knows_pieces_of_what_is_free_within_tensorflows_pool(self):
        symptom = OutOfMemoryCrash("TensorFlow", "GPU 0", 64 * MIB, 300 * MIB, 160 * MIB, 140 * MIB, 300 * MIB)
        assert RULE.from_crash(TEXT, symptom).severity == "error"

    def test_names_the_others_and_sends_to_them_where_they_hold_most(self):
        others = (Holder(4711, 3 * GIB, "ada", ("PyTorch",)), Holder(12, 3 * GIB))
        symptom = OutOfMemoryCrash(
            "PyTorch", "GPU 0", GIB, 8 * GIB, 0, GIB, GIB, others=others, elsewhere=6 * GIB, card=8 * GIB
        )
        assert RULE.from_crash(TEXT, symptom).severity == "error"

    def test_speaks_keras_of_keras(self):
        need = ModelMemory("Sequential", MIB, MIB, "SGD", MIB, library="keras")
        symptom = OutOfMemoryCrash(
            "TensorFlow", "GPU 0", 320_000_000, shape=(40000, 2000), dtype="float", need=need
        )
        assert RULE.from_crash(LIVE, symptom).severity == "error"

    def test_speaks_of_training_arguments_to_the_users_of_a_trainer(self):
        frames = (*FRAMES, FrameFacts("transformers/trainer.py", 1650, "training_step"))
        crash = CrashFacts("OutOfMemoryError", "CUDA out of memory.", frames, live=False)
        assert RULE.from_crash(crash, OutOfMemoryCrash("PyTorch", "GPU 0", MIB)).severity == "error"

    def test_does_not_halve_a_single_row(self):
        need = ModelMemory("GPT2LMHeadModel", MIB, MIB, batch_rows=1)
        assert RULE.from_crash(LIVE, OutOfMemoryCrash("PyTorch", "GPU", None, need=need)).severity == "error"

    def test_says_that_a_simulated_card_is_one(self):
        crash = CrashFacts("OutOfMemoryError", "CUDA out of memory. (GPU 0 is simulated.)", FRAMES, live=True)
        assert RULE.from_crash(crash, OutOfMemoryCrash("PyTorch", "GPU 0", MIB)).severity == "error"

    def test_says_what_a_kill_means(self):
        assert (
            RULE.from_crash(
                CrashFacts("SIGKILL", "Killed", (), live=False), OutOfMemoryCrash(None, "CPU", killed=True)
            ).severity
            == "error"
        )
        assert RULE.from_crash(TEXT, OutOfMemoryCrash(None, "CPU", killed=True, worker=True)).severity == "error"


class TestEvaluation:
    SYMPTOM = OutOfMemoryCrash("PyTorch", "GPU 0", 4 * GIB, 10 * GIB, GIB, 6 * GIB, 6 * GIB)

    def found(self, *frames, symptom=SYMPTOM):
        called = [FrameFacts(file, 90, function, yours=False) for file, function in frames]
        crash = CrashFacts("OutOfMemoryError", "CUDA out of memory.", (*FRAMES, *called), live=False)
        return RULE.from_crash(crash, symptom)

    @pytest.mark.parametrize(
        "last",
        [
            ("transformers/trainer_pt_utils.py", "nested_concat"),
            ("transformers/trainer_pt_utils.py", "torch_pad_and_concatenate"),
            ("accelerate/accelerator.py", "gather_for_metrics"),
        ],
    )
    def test_joined_predictions_are_to_be_made_smaller_and_not_the_batch(self, last):
        assert self.found(("transformers/trainer.py", "evaluation_loop"), last).severity == "error"

    @pytest.mark.parametrize(
        ("file", "function"),
        [
            ("transformers/trainer.py", "evaluation_loop"),
            ("lightning/pytorch/loops/evaluation_loop.py", "run"),
            ("pytorch_lightning/loops/evaluation_loop.py", "_evaluation_step"),
            ("keras/src/backend/torch/trainer.py", "evaluate"),
        ],
    )
    def test_an_evaluation_has_a_batch_size_of_its_own(self, file, function):
        assert self.found((file, function), ("torch/nn/functional.py", "linear")).severity == "error"

    @pytest.mark.parametrize(
        ("file", "function"),
        [
            ("transformers/trainer.py", "training_step"),
            ("lightning/pytorch/loops/training_epoch_loop.py", "advance"),
            ("keras/src/backend/torch/trainer.py", "train_step"),
        ],
    )
    def test_a_batch_of_the_training_is_told_as_before(self, file, function):
        assert self.found((file, function)).severity == "error"

    def test_weights_that_do_not_fit_ask_for_no_smaller_batch(self):
        crowded = OutOfMemoryCrash("PyTorch", "GPU 0", GIB, card=10 * GIB)
        finding = self.found(("torch/nn/modules/module.py", "_apply"), symptom=crowded)
        assert "10% of the card's 10.0 GiB" in finding.message
        assert finding.fix.startswith("run nvidia-smi")
        assert not any("batch" in fix for fix in (finding.fix, *finding.alternatives))

    def test_the_hosts_memory_has_no_room_for_what_the_gpu_gives_up(self):
        symptom = OutOfMemoryCrash("PyTorch", "CPU", 4 * GIB)
        assert self.found(("transformers/trainer.py", "evaluation_loop"), symptom=symptom).severity == "error"
