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
    batch_length=128,
)
LESS = (
    "torch.autocast for half-sized activations; activation checkpointing (model.gradient_checkpointing_enable() "
    "in transformers), which computes them again instead of keeping them"
)
SEARCH = "diagnostics.largest_batch(step) searches for the largest that fits"


class TestFromCrash:
    def test_adds_up_what_the_model_takes_and_what_the_batch_added(self):
        symptom = OutOfMemoryCrash(
            "PyTorch", "GPU 0", 512 * MIB, 8 * GIB, 100 * MIB, 7 * GIB, 7 * GIB + 100 * MIB, others=(), need=ADAM
        )
        finding = RULE.from_crash(LIVE, symptom)
        assert finding.severity == "error"
        assert finding.message == (
            "The memory of GPU 0 ran out: 512.0 MiB more was requested. 100.0 MiB of 8.0 GiB was free. "
            "Training DistilBertForSequenceClassification needs 1.0 GiB before any batch: 256.0 MiB for "
            "weights, 256.0 MiB for gradients and 512.0 MiB for AdamW's two moments. The batch of 256 "
            "rows of 128 tokens had added 6.0 GiB by then; activations grow in proportion to its rows."
        )
        assert (finding.fix, *finding.alternatives) == (
            "128 rows instead of 256, and step the optimizer every two batches: the same gradient",
            "search for the largest batch that fits: diagnostics.largest_batch(step)",
            "torch.autocast, which halves the activations",
            (
                "activation checkpointing (model.gradient_checkpointing_enable() in transformers), which "
                "recomputes activations instead of storing them"
            ),
        )
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
            "batch_length": 128,
        }
        assert str(finding.where) == "train.py:31"

    def test_says_what_the_text_holds_and_no_more(self):
        finding = RULE.from_crash(TEXT, OutOfMemoryCrash("PyTorch", "CPU", 1_600_000_000))
        assert finding.message == "The host's memory ran out: 1.5 GiB more was requested."
        assert (finding.fix, *finding.alternatives) == (
            "half the batch size, and step the optimizer every two batches: the same gradient",
            "search for the largest batch that fits: diagnostics.largest_batch(step)",
            "torch.autocast, which halves the activations",
            (
                "activation checkpointing (model.gradient_checkpointing_enable() in transformers), which "
                "recomputes activations instead of storing them"
            ),
        )

    def test_says_that_no_batch_helps_a_model_that_fills_the_memory_by_itself(self):
        finding = RULE.from_crash(LIVE, OutOfMemoryCrash("PyTorch", "GPU 0", MIB, GIB + 50 * MIB, 0, need=ADAM))
        assert (finding.fix, *finding.alternatives) == (
            "no batch is small enough: train fewer of the weights (freeze the rest, or use LoRA)",
            "store the weights in half precision",
            "use an optimizer with less state",
            "use a smaller model or a larger GPU",
        )

    def test_knows_memory_that_is_there_in_pieces(self):
        symptom = OutOfMemoryCrash("PyTorch", "GPU 0", 100 * MIB, 8 * GIB, 10 * MIB, 6 * GIB, 7 * GIB, others=())
        finding = RULE.from_crash(TEXT, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 100.0 MiB more was requested. 10.0 MiB of 8.0 GiB was free. "
            "PyTorch itself holds 1.0 GiB that no tensor uses. That would be enough, but it is "
            "fragmented into blocks that are too small."
        )
        assert (finding.fix, *finding.alternatives) == (
            (
                "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before torch is imported, which avoids "
                "the fragmentation"
            ),
            "use a smaller batch",
        )

    def test_knows_pieces_of_what_is_free_within_tensorflows_pool(self):
        symptom = OutOfMemoryCrash("TensorFlow", "GPU 0", 64 * MIB, 300 * MIB, 160 * MIB, 140 * MIB, 300 * MIB)
        finding = RULE.from_crash(TEXT, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 64.0 MiB more was requested. 160.0 MiB of 300.0 MiB was free. "
            "That would be enough, but TensorFlow's memory is fragmented into blocks that are too small."
        )
        assert (finding.fix, *finding.alternatives) == (
            (
                "set TF_GPU_ALLOCATOR=cuda_malloc_async in the environment: CUDA's allocator avoids the "
                "fragmentation"
            ),
            "use a smaller batch",
        )

    def test_names_the_others_and_sends_to_them_where_they_hold_most(self):
        others = (Holder(4711, 3 * GIB, "ada", ("PyTorch",)), Holder(12, 3 * GIB))
        symptom = OutOfMemoryCrash(
            "PyTorch", "GPU 0", GIB, 8 * GIB, 0, GIB, GIB, others=others, elsewhere=6 * GIB, card=8 * GIB
        )
        finding = RULE.from_crash(TEXT, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 1.0 GiB more was requested. 0 B of 8.0 GiB was free. Other "
            "processes hold part of it: process 4711 (ada, PyTorch): 3.0 GiB, process 12: 3.0 GiB."
        )
        assert finding.fix == (
            "free memory first: other processes hold most of the GPU, and `diagnose gpu` lists them"
        )

    def test_speaks_keras_of_keras(self):
        need = ModelMemory("Sequential", MIB, MIB, "SGD", MIB, library="keras")
        symptom = OutOfMemoryCrash(
            "TensorFlow", "GPU 0", 320_000_000, shape=(40000, 2000), dtype="float", need=need
        )
        finding = RULE.from_crash(LIVE, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 305.2 MiB more was requested for a tensor of shape (40000, "
            "2000) of float. Training Sequential needs 3.0 MiB before any batch: 1.0 MiB for weights, "
            "1.0 MiB for gradients and 1.0 MiB for SGD's state."
        )
        assert (finding.fix, *finding.alternatives) == (
            (
                "half the batch size, and create the optimizer with gradient_accumulation_steps=2: the same "
                "gradient"
            ),
            "search for the largest batch that fits: diagnostics.largest_batch(step)",
            ('keras.mixed_precision.set_global_policy("mixed_float16"), which halves the activations'),
        )

    def test_speaks_of_training_arguments_to_the_users_of_a_trainer(self):
        frames = (*FRAMES, FrameFacts("transformers/trainer.py", 1650, "training_step"))
        crash = CrashFacts("OutOfMemoryError", "CUDA out of memory.", frames, live=False)
        finding = RULE.from_crash(crash, OutOfMemoryCrash("PyTorch", "GPU 0", MIB))
        assert (finding.fix, *finding.alternatives) == (
            (
                "half the batch size, and TrainingArguments(gradient_accumulation_steps=2), or twice its "
                "current value: the same gradient"
            ),
            "search for the largest batch that fits: diagnostics.largest_batch(step)",
            "TrainingArguments(bf16=True), which halves the activations",
            (
                "TrainingArguments(gradient_checkpointing=True), which recomputes activations instead of "
                "storing them"
            ),
        )

    def test_does_not_halve_a_single_row(self):
        need = ModelMemory("GPT2LMHeadModel", MIB, MIB, batch_rows=1, batch_length=4096)
        finding = RULE.from_crash(LIVE, OutOfMemoryCrash("PyTorch", "GPU", None, need=need))
        assert finding.message == (
            "The GPU's memory ran out. Training GPT2LMHeadModel needs 2.0 MiB before any batch: 1.0 MiB "
            "for weights and 1.0 MiB for gradients. The batch of 1 row of 4096 tokens adds activations, "
            "in proportion to its rows."
        )
        assert (finding.fix, *finding.alternatives) == (
            "shorter rows (a smaller max_length)",
            "torch.autocast, which halves the activations",
            (
                "activation checkpointing (model.gradient_checkpointing_enable() in transformers), which "
                "recomputes activations instead of storing them"
            ),
        )

    def test_says_that_a_simulated_card_is_one(self):
        crash = CrashFacts("OutOfMemoryError", "CUDA out of memory. (GPU 0 is simulated.)", FRAMES, live=True)
        assert RULE.from_crash(crash, OutOfMemoryCrash("PyTorch", "GPU 0", MIB)).message == (
            "A simulated GPU: PyTorch's error message, no GPU. The memory of GPU 0 ran out: 1.0 MiB more "
            "was requested."
        )

    def test_says_what_a_kill_means(self):
        finding = RULE.from_crash(
            CrashFacts("SIGKILL", "Killed", (), live=False), OutOfMemoryCrash(None, "CPU", killed=True)
        )
        assert finding.message == (
            "The process was killed by signal 9 (SIGKILL), which allows no exception. Unless somebody "
            "sent it by hand, the operating system or the container sent it, nearly always because host "
            "memory (not GPU memory) ran out. A job scheduler does the same at its own limit."
        )
        assert (finding.fix, *finding.alternatives) == (
            "confirm the cause: `dmesg | grep -i kill`",
            "use fewer workers (num_workers): each holds a copy of the dataset's data in memory",
            "read the data from disk row by row",
            "use a smaller batch",
        )
        worker = RULE.from_crash(TEXT, OutOfMemoryCrash(None, "CPU", killed=True, worker=True))
        assert worker.message.startswith(
            "A worker of the data loader was killed by signal 9 (SIGKILL), which allows no exception."
        )

    def test_knows_the_shared_memory_of_workers(self):
        finding = RULE.from_crash(TEXT, OutOfMemoryCrash("PyTorch", "shared memory", worker=True))
        assert finding.message == (
            "A worker of the data loader ran out of shared memory: workers pass their batches through "
            "/dev/shm, which is full. In a container it has 64 MiB by default."
        )
        assert (finding.fix, *finding.alternatives) == (
            "start the container with --shm-size=8g (or --ipc=host)",
            "use fewer workers, or num_workers=0",
        )


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
        finding = self.found(("transformers/trainer.py", "evaluation_loop"), last)
        assert "keeps the logits of all batches on the GPU until the end" in finding.message
        assert finding.fix.startswith("Trainer(preprocess_logits_for_metrics=")
        assert not any("gradient_accumulation" in fix for fix in (finding.fix, *finding.alternatives))

    @pytest.mark.parametrize(
        ("file", "function", "fix"),
        [
            ("transformers/trainer.py", "evaluation_loop", "per_device_eval_batch_size"),
            ("lightning/pytorch/loops/evaluation_loop.py", "run", "val_dataloader"),
            ("pytorch_lightning/loops/evaluation_loop.py", "_evaluation_step", "val_dataloader"),
            ("keras/src/backend/torch/trainer.py", "evaluate", "validation_batch_size"),
        ],
    )
    def test_an_evaluation_has_a_batch_size_of_its_own(self, file, function, fix):
        finding = self.found((file, function), ("torch/nn/functional.py", "linear"))
        assert fix in finding.fix
        assert "batch size of its own" in finding.message

    @pytest.mark.parametrize(
        ("file", "function"),
        [
            ("transformers/trainer.py", "training_step"),
            ("lightning/pytorch/loops/training_epoch_loop.py", "advance"),
            ("keras/src/backend/torch/trainer.py", "train_step"),
        ],
    )
    def test_a_batch_of_the_training_is_told_as_before(self, file, function):
        assert self.found((file, function)).fix.startswith("half the batch size")

    def test_the_hosts_memory_has_no_room_for_what_the_gpu_gives_up(self):
        symptom = OutOfMemoryCrash("PyTorch", "CPU", 4 * GIB)
        finding = self.found(("transformers/trainer.py", "evaluation_loop"), symptom=symptom)
        assert "eval_accumulation_steps" not in f"{finding.fix}{finding.alternatives}"
