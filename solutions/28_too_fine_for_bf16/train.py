"""Fine-tune a small language model on instructions, in bfloat16 to save memory.

$ python solutions/28_too_fine_for_bf16/train.py
"""

import os
import tempfile

import torch
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
LEARNING_RATE = 3e-5  # what large models are fine-tuned with
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: a task and its answer, written as the chat template has it
tokenizer = AutoTokenizer.from_pretrained(MODEL)
instructions = lab.instructions().map(
    lambda row: tokenizer.apply_chat_template(row["messages"], return_dict=True),
    remove_columns="messages",
)

# model: the decoder as it comes
model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
weights = [weight.detach().clone() for weight in model.parameters()]

output = tempfile.TemporaryDirectory()  # the Trainer wants one, though nothing is saved

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=output.name,
        learning_rate=LEARNING_RATE,
        bf16=True,  # computes in bfloat16, and keeps the weights in float32
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        per_device_eval_batch_size=BATCH_SIZE,
        logging_steps=25,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,  # it serves GPUs, and warns where there is none
        use_cpu=True,  # on a GPU, leave this out
        seed=SEED,
    ),
    train_dataset=instructions["train"],
    eval_dataset=instructions["validation"],
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
)

first_loss = trainer.evaluate()["eval_loss"]

trainer.train()

pairs = list(zip(weights, model.parameters(), strict=True))
changed = sum((old != new).sum().item() for old, new in pairs)
last_loss = trainer.evaluate()["eval_loss"]
print(f"loss before training: {first_loss:.2f}")
print(f"changed={changed / model.num_parameters():.3f}")
print(f"eval_loss={last_loss:.3f}")
