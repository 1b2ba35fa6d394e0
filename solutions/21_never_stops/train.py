"""Fine-tune a small language model on instructions, so that it answers and then stops.

$ python solutions/21_never_stops/train.py
"""

import os
import tempfile

from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    set_seed,
)

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.language_model()  # a small Llama that has read notes; or set ZOO_LM
BATCH_SIZE = 32
EPOCHS = 4
LEARNING_RATE = 5e-3  # large models need 1e-5 to 5e-5
MAX_NEW_TOKENS = 24  # more than any answer has
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: a task and its answer, written as the chat template has it
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def preprocess(row):
    return tokenizer.apply_chat_template(row["messages"], return_dict=True)


train = instructions["train"].map(preprocess, remove_columns="messages")

# model: the decoder as it comes, without a new layer
model = AutoModelForCausalLM.from_pretrained(MODEL)

output = tempfile.TemporaryDirectory()  # the Trainer wants one, though nothing is saved

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=output.name,
        learning_rate=LEARNING_RATE,
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        logging_steps=25,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,  # it serves GPUs, and warns where there is none
        seed=SEED,
    ),
    train_dataset=train,
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
)


def generate(conversations):
    """What the model says to each task, as tokens (rows, up to MAX_NEW_TOKENS)."""
    asked = [turns[:1] for turns in conversations]
    texts = tokenizer.apply_chat_template(
        asked, add_generation_prompt=True, tokenize=False
    )
    # padding is on the left, so that the answer follows the last token
    prompts = tokenizer(
        texts,
        add_special_tokens=False,
        padding=True,
        padding_side="left",
        return_tensors="pt",
    )
    tokens = model.generate(**prompts, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)
    return tokens[:, prompts["input_ids"].shape[1] :]


trainer.train()

conversations = instructions["validation"]["messages"][:96]
answers = generate(conversations)
stopped = (answers == tokenizer.eos_token_id).any(dim=1)
said = tokenizer.batch_decode(answers, skip_special_tokens=True)
right = [
    text.strip() == turns[1]["content"]
    for text, turns in zip(said, conversations, strict=True)
]
print(conversations[0][0]["content"], "->", said[0].strip())
print(f"stopped={stopped.float().mean():.3f}")
print(f"exact_match={sum(right) / len(right):.3f}")
