from diagnostics.facts.crash import CrashFacts, FrameFacts, ModelMemory, OutOfMemoryCrash
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
            "The memory of GPU 0 ran out: 512.0 MiB more was asked for. Of 8.0 GiB there was 100.0 MiB free. "
            "Training DistilBertForSequenceClassification takes 1.0 GiB before any batch: 256.0 MiB of weights, "
            "256.0 MiB of gradients and 512.0 MiB of AdamW's two moments. The batch of 256 rows of 128 tokens had "
            "added 6.0 GiB by then, and adds activations in proportion with its rows."
        )
        assert finding.fix == (
            f"128 rows instead of 256, and step the optimizer once in two batches: the same step. {SEARCH}. Or "
            f"{LESS}"
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
        assert finding.message == "The host's memory ran out: 1.5 GiB more was asked for."
        assert finding.fix == (
            f"half the batch size, and step the optimizer once in two batches: the same step. {SEARCH}. Or {LESS}"
        )

    def test_says_that_no_batch_helps_a_model_that_fills_the_memory_by_itself(self):
        finding = RULE.from_crash(LIVE, OutOfMemoryCrash("PyTorch", "GPU 0", MIB, GIB + 50 * MIB, 0, need=ADAM))
        assert finding.fix == (
            "no batch is small enough: train fewer of the weights (freeze the rest, or LoRA), hold them in half "
            "precision, use an optimizer with less state, or take a smaller model or a larger card"
        )

    def test_knows_memory_that_is_there_in_pieces(self):
        symptom = OutOfMemoryCrash("PyTorch", "GPU 0", 100 * MIB, 8 * GIB, 10 * MIB, 6 * GIB, 7 * GIB, others=())
        finding = RULE.from_crash(TEXT, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 100.0 MiB more was asked for. Of 8.0 GiB there was 10.0 MiB free. "
            "PyTorch itself holds 1.0 GiB that no tensor uses, which would be enough, but in pieces that are each "
            "too small."
        )
        assert finding.fix == (
            "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before torch is imported, which keeps the "
            "pieces together; or a smaller batch"
        )

    def test_knows_pieces_of_what_is_free_within_tensorflows_pool(self):
        symptom = OutOfMemoryCrash("TensorFlow", "GPU 0", 64 * MIB, 300 * MIB, 160 * MIB, 140 * MIB, 300 * MIB)
        finding = RULE.from_crash(TEXT, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 64.0 MiB more was asked for. Of 300.0 MiB there was 160.0 MiB free. "
            "That would be enough, but TensorFlow holds it in pieces that are each too small."
        )
        assert finding.fix == (
            "set TF_GPU_ALLOCATOR=cuda_malloc_async in the environment, which has CUDA itself manage the pieces; "
            "or a smaller batch"
        )

    def test_names_the_others_and_sends_to_them_where_they_hold_most(self):
        others = (Holder(4711, 3 * GIB, "ada", ("PyTorch",)), Holder(12, 3 * GIB))
        symptom = OutOfMemoryCrash(
            "PyTorch", "GPU 0", GIB, 8 * GIB, 0, GIB, GIB, others=others, elsewhere=6 * GIB, card=8 * GIB
        )
        finding = RULE.from_crash(TEXT, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 1.0 GiB more was asked for. Of 8.0 GiB there was 0 B free. Other "
            "processes hold part of it: process 4711 (ada, PyTorch): 3.0 GiB, process 12: 3.0 GiB."
        )
        assert finding.fix == "make room first: most of the card is other processes'. `diagnose gpu` lists them"

    def test_speaks_keras_of_keras(self):
        need = ModelMemory("Sequential", MIB, MIB, "SGD", MIB, library="keras")
        symptom = OutOfMemoryCrash(
            "TensorFlow", "GPU 0", 320_000_000, shape=(40000, 2000), dtype="float", need=need
        )
        finding = RULE.from_crash(LIVE, symptom)
        assert finding.message == (
            "The memory of GPU 0 ran out: 305.2 MiB more was asked for, for a tensor of shape (40000, 2000) of "
            "float. Training Sequential takes 3.0 MiB before any batch: 1.0 MiB of weights, 1.0 MiB of gradients "
            "and 1.0 MiB of SGD's state."
        )
        assert finding.fix == (
            "half the batch size, and build the optimizer with gradient_accumulation_steps=2: the same step. "
            f'{SEARCH}. Or keras.mixed_precision.set_global_policy("mixed_float16") for half-sized activations'
        )

    def test_speaks_of_training_arguments_to_the_users_of_a_trainer(self):
        frames = (*FRAMES, FrameFacts("transformers/trainer.py", 1650, "training_step"))
        crash = CrashFacts("OutOfMemoryError", "CUDA out of memory.", frames, live=False)
        assert RULE.from_crash(crash, OutOfMemoryCrash("PyTorch", "GPU 0", MIB)).fix == (
            "half the batch size, and TrainingArguments(gradient_accumulation_steps=2), or twice what it is now: "
            f"the same step. {SEARCH}. Or TrainingArguments(bf16=True) for half-sized activations; "
            "gradient_checkpointing=True, which computes them again instead of keeping them"
        )

    def test_does_not_halve_a_single_row(self):
        need = ModelMemory("GPT2LMHeadModel", MIB, MIB, batch_rows=1, batch_length=4096)
        finding = RULE.from_crash(LIVE, OutOfMemoryCrash("PyTorch", "GPU", None, need=need))
        assert finding.message == (
            "The GPU's memory ran out. Training GPT2LMHeadModel takes 2.0 MiB before any batch: 1.0 MiB of "
            "weights and 1.0 MiB of gradients. The batch of 1 row of 4096 tokens adds activations in proportion "
            "with its rows."
        )
        assert finding.fix == f"shorter rows (a smaller max_length), then {LESS}"

    def test_says_that_a_simulated_card_is_one(self):
        crash = CrashFacts("OutOfMemoryError", "CUDA out of memory. (GPU 0 is simulated.)", FRAMES, live=True)
        assert RULE.from_crash(crash, OutOfMemoryCrash("PyTorch", "GPU 0", MIB)).message == (
            "A simulated card: PyTorch's words, no card. The memory of GPU 0 ran out: 1.0 MiB more was asked for."
        )

    def test_says_what_a_kill_means(self):
        finding = RULE.from_crash(
            CrashFacts("SIGKILL", "Killed", (), live=False), OutOfMemoryCrash(None, "CPU", killed=True)
        )
        assert finding.message == (
            "The process was ended from outside by signal 9 (SIGKILL), which leaves no time for an exception. "
            "When nobody sent it by hand, it was the operating system or the container, and nearly always because "
            "the memory of the host, not of a card, had run out. A job scheduler does the same at its own limit."
        )
        assert finding.fix.startswith("make sure with `dmesg | grep -i kill`; then fewer workers (num_workers)")
        worker = RULE.from_crash(TEXT, OutOfMemoryCrash(None, "CPU", killed=True, worker=True))
        assert worker.message.startswith("A worker of the data loader was ended from outside by signal 9")

    def test_knows_the_shared_memory_of_workers(self):
        finding = RULE.from_crash(TEXT, OutOfMemoryCrash("PyTorch", "shared memory", worker=True))
        assert finding.message == (
            "A worker of the data loader ran out of shared memory: workers hand their batches over through "
            "/dev/shm, and that is full. Containers give it 64 MiB unless told otherwise."
        )
        assert finding.fix == (
            "start the container with --shm-size=8g (or --ipc=host), or load with fewer workers, or none"
        )
