"""GPT-2 is trained with a collator that masks nothing."""

import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)  # fmt: skip

set_seed(0)
sentence = "the tide rose over grey stones while two gulls cried above an empty boat near long wet piers"
words = sentence.split()
vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", "<mask>", *words])}
core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", mask_token="<mask>"
)
starts = torch.randint(len(words), (480,)).tolist()
texts = [" ".join(words[(start + 3 * place) % len(words)] for place in range(14)) for start in starts]
rows = [tokenizer(text) for text in texts]
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(tokenizer), n_positions=16, n_embd=48, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3, logging_steps=30,
        save_strategy="no", use_cpu=True, disable_tqdm=True, report_to=[],
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    Trainer(model, args, train_dataset=rows, data_collator=collator).train()
prompt = tokenizer(texts[0], return_tensors="pt").input_ids[:, :4]
print(tokenizer.decode(model.generate(prompt, max_new_tokens=8, do_sample=False)[0]))
