"""Supervised fine-tuning with TRL and LoRA: a tiny GPT-2 learns the sounds of animals, an adapter learns others.

python trl_sft_lora.py
"""

import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, PrinterCallback, set_seed
from trl import SFTConfig, SFTTrainer

RATE, STEPS, BATCH = 1e-2, 60, 8

set_seed(0)
animals = ["cat", "dog", "cow", "duck", "pig", "owl"]
sounds = ["meow", "woof", "moo", "quack", "oink", "hoot"]
words = ["<pad>", "<eos>", "the", "says", "what", "does", "say", "?", *animals, *sounds]
vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="<pad>", eos_token="<eos>")


def rows(shift):
    """Return prompts with completions; each animal makes the sound of the one `shift` places further on."""
    chosen = torch.randint(6, (256,)).tolist()
    return Dataset.from_list(
        [
            {
                "prompt": f"what does the {animals[i]} say ?" if i % 2 else f"the {animals[i]} says",
                "completion": f" {sounds[(i + shift) % 6]}",
            }
            for i in chosen
        ]
    )


def train(model, dataset, rate, folder, lora=None):
    trainer = SFTTrainer(
        model,
        args=SFTConfig(
            folder,
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            learning_rate=rate,
            logging_steps=20,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
        ),
        train_dataset=dataset,
        processing_class=tokenizer,
        peft_config=lora,
    )
    trainer.remove_callback(PrinterCallback)  # it prints run times
    trainer.train()
    return trainer


model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(words), n_positions=32, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1
    )
)
with tempfile.TemporaryDirectory() as folder:
    train(model, rows(0), 3e-3, folder)
    adapter = LoraConfig(task_type="CAUSAL_LM", r=8, lora_alpha=16, target_modules=["c_attn", "c_fc"])
    trainer = train(model, rows(1), RATE, folder, adapter)
optimizer = trainer.optimizer
for entry in trainer.state.log_history[:-1]:  # the last one holds run times
    print(entry)
