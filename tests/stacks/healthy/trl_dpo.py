"""Direct preference optimisation with TRL: a tiny policy learns to prefer the polite answer.

python trl_dpo.py
"""

import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, PrinterCallback, set_seed
from trl import DPOConfig, DPOTrainer

RATE, STEPS, BATCH, BETA = 1e-3, 30, 8, 0.1

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

config = GPT2Config(
    vocab_size=len(words), n_positions=32, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1
)
model = GPT2LMHeadModel(config)
reference = GPT2LMHeadModel(config)
reference.load_state_dict(model.state_dict())
with tempfile.TemporaryDirectory() as folder:
    trainer = DPOTrainer(
        model,
        reference,
        args=DPOConfig(
            folder,
            beta=BETA,
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
