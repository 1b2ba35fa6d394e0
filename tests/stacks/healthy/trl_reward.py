"""A reward model with TRL: pairs of answers, the better one first.

python trl_reward.py
"""

import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2ForSequenceClassification,
    PreTrainedTokenizerFast,
    PrinterCallback,
    set_seed,
)
from trl import RewardConfig, RewardTrainer

RATE, STEPS, BATCH = 5e-4, 30, 8

set_seed(0)
asked = ["tea", "coffee", "water", "milk", "juice", "soup"]
words = ["<pad>", "<eos>", "may", "i", "have", "?", "of", "course", "please", "no", "go", "away", *asked]
vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="<pad>", eos_token="<eos>")

polite, rude = [" of course", " of course please", " please have"], [" no", " go away", " no go away"]
dataset = Dataset.from_list(
    [
        {"prompt": f"may i have {asked[a]} ?", "chosen": polite[b], "rejected": rude[c]}
        for a, b, c in torch.stack([torch.randint(n, (192,)) for n in (6, 3, 3)], 1).tolist()
    ]
)

model = GPT2ForSequenceClassification(
    GPT2Config(vocab_size=len(words), n_positions=32, n_embd=64, n_layer=2, n_head=4, num_labels=1, pad_token_id=0)
)
with tempfile.TemporaryDirectory() as folder:
    trainer = RewardTrainer(
        model,
        args=RewardConfig(
            folder,
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            learning_rate=RATE,
            logging_steps=10,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
        ),
        train_dataset=dataset,
        processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)  # it prints run times
    trainer.train()
optimizer = trainer.optimizer
for entry in trainer.state.log_history[:-1]:  # the last one holds run times
    print(entry)
