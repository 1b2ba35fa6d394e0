"""Fine-tune LoRA adapters of a small language model, recomputing each layer.

$ python bugs/25_idle_adapter/train.py
"""

import functools
import os

import torch
import torch.distributed.algorithms._checkpoint.checkpoint_wrapper as checkpointing
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.language_model()  # a small Llama that has read notes; or set ZOO_LM
BATCH_SIZE = 32
EPOCHS = 2
LEARNING_RATE = 2e-2  # large models need 1e-4 to 2e-4 with LoRA
MAX_NEW_TOKENS = 24  # more than any answer has
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: a task and its answer, written as the chat template has it
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def collate(rows):
    """Tokenize conversations and pad them; only the answers count in the loss."""
    batch = tokenizer.apply_chat_template(
        [row["messages"] for row in rows],
        padding=True,
        return_dict=True,
        return_tensors="pt",
        return_assistant_tokens_mask=True,
    )
    answers = torch.as_tensor(batch.pop("assistant_masks")) == 1
    batch["labels"] = batch["input_ids"].masked_fill(~answers, -100)
    return batch


train = DataLoader(
    instructions["train"], batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate
)

# model: frozen, with an adapter on each linear layer, and a head that is trained
lora = LoraConfig(
    task_type="CAUSAL_LM", target_modules="all-linear", modules_to_save=["lm_head"]
)
base = AutoModelForCausalLM.from_pretrained(MODEL, use_cache=False)
model = get_peft_model(base, lora)

# memory: store only the inputs of each layer, and recompute it in the backward pass
checkpointing.apply_activation_checkpointing(
    model,
    checkpoint_wrapper_fn=functools.partial(
        checkpointing.checkpoint_wrapper,
        checkpoint_impl=checkpointing.CheckpointImpl.REENTRANT,
    ),
    check_fn=lambda module: isinstance(module, LlamaDecoderLayer),
)

trained = [weight for weight in model.parameters() if weight.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE)
schedule = torch.optim.lr_scheduler.LinearLR(
    optimizer, 1.0, 0.0, total_iters=EPOCHS * len(train)
)

model.train()
for epoch in range(EPOCHS):
    for step, batch in enumerate(train):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        if step % 25 == 0:
            print(f"epoch {epoch}, step {step}: loss {loss.item():.3f}")

model.eval()

tasks = instructions["validation"]["messages"][:96]
prompts = tokenizer.apply_chat_template(
    [turns[:1] for turns in tasks], add_generation_prompt=True, tokenize=False
)
batch = tokenizer(
    prompts,
    add_special_tokens=False,  # the template has written them
    padding=True,
    padding_side="left",
    return_tensors="pt",
)
tokens = model.generate(**batch, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)
tokens = tokens[:, batch["input_ids"].shape[1] :]
said = tokenizer.batch_decode(tokens, skip_special_tokens=True)
wanted = [turns[1]["content"] for turns in tasks]
right = [text.strip() == answer for text, answer in zip(said, wanted, strict=True)]
print(f"exact_match={sum(right) / len(right):.3f}")
