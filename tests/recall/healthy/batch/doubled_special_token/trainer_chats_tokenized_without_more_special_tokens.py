"""Chats for a small Llama: the template writes the start token, and the tokenizer adds none."""

import random
import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    DataCollatorForLanguageModeling,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(22)
NUMBERS = [str(n) for n in range(20)]
WORDS = ["<pad>", "<s>", "</s>", "<unk>", "user:", "assistant:", "add", "and", "please", "that", "makes", *NUMBERS]
core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
)
tokenizer.chat_template = (
    "{{ bos_token }}{% for m in messages %} {{ m.role }}: {{ m.content }}{% endfor %} {{ eos_token }}"
)


def chat():
    a, b = random.randrange(10), random.randrange(10)
    asked = f"please add {a} and {b}" if random.random() < 0.5 else f"add {a} and {b} please"
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": f"that makes {a + b}"}]


texts = [tokenizer.apply_chat_template(chat(), tokenize=False) for _ in range(600)]
data = Dataset.from_dict({"text": texts}).map(
    lambda rows: tokenizer(rows["text"], truncation=True, max_length=32, add_special_tokens=False),
    batched=True,
    remove_columns=["text"],
)
config = LlamaConfig(
    vocab_size=len(WORDS), hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
model = LlamaForCausalLM(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3, save_strategy="no",
        logging_steps=25, report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    Trainer(model, arguments, train_dataset=data, data_collator=collator).train()
