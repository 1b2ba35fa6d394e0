"""Supervised fine-tuning with TRL: prompts and completions, a tiny GPT-2.

python trl_sft.py
"""

import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, PrinterCallback, set_seed
from trl import SFTConfig, SFTTrainer

RATE, STEPS, BATCH = 3e-3, 40, 8

set_seed(0)
animals = ["cat", "dog", "cow", "duck", "pig", "owl"]
sounds = ["meow", "woof", "moo", "quack", "oink", "hoot"]
words = ["<pad>", "<eos>", "the", "says", "what", "does", "say", "?", *animals, *sounds]
vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="<pad>", eos_token="<eos>")

pairs = [(animals[i % 6], sounds[i % 6]) for i in torch.randint(6, (256,)).tolist()]
dataset = Dataset.from_list(
    [
        {"prompt": f"what does the {animal} say ?" if i % 2 else f"the {animal} says", "completion": f" {sound}"}
        for i, (animal, sound) in enumerate(pairs)
    ]
)

model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(words), n_positions=32, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1
    )
)
with tempfile.TemporaryDirectory() as folder:
    trainer = SFTTrainer(
        model,
        args=SFTConfig(
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

prompt = tokenizer("what does the duck say ?", return_tensors="pt")
model.eval()
answer = model.generate(input_ids=prompt["input_ids"], max_new_tokens=2, do_sample=False, pad_token_id=0)
print("answer:", tokenizer.decode(answer[0, prompt["input_ids"].shape[1] :]))
