"""A small Llama that was trained on plain notes, once for each machine, and its tokenizer.

It has two layers and 110,000 weights, and knows about a hundred words. Otherwise it is what people fine-tune: the
same architecture, a byte-level BPE tokenizer that puts `<s>` before each text, `</s>`, `<pad>`, a chat template,
and the same files in its directory. If the environment variable `ZOO_LM` is set to a model's name or directory,
that one is used instead.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bugs.lab.cache import built
from bugs.lab.checkpoint import named_model
from bugs.lab.instructions import VERSION as TEXT_VERSION
from bugs.lab.instructions import pages, tasks

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VERSION = 1  # raise it when the files change: the cache keeps one directory a version

SPECIAL = ("<pad>", "<s>", "</s>")  # in this order: padding is id 0
PIECES = 600  # of the tokenizer, at most
PAGES = 4_000  # that the tokenizer reads
WIDTH, LAYERS, HEADS = 64, 2, 2
ROTATION = 100.0  # base of the rotary embedding: 10,000 is for contexts of thousands of tokens
STEPS, ROWS, LENGTH = 800, 40, 40  # of the training: a row is the beginning of a page
LEARNING_RATE, WARM_UP = 4e-3, 50  # of what Muon does not train: embeddings and norms
SEED = 0
# A conversation begins with <s>; an answer begins with a space and ends with </s>.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}### User: {{ message['content'] }}\n"
    "{% else %}### Assistant:{% generation %} {{ message['content'] }}{{ eos_token }}{% endgeneration %}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}### Assistant:{% endif %}"
)


def language_model() -> str:
    """What to hand to `from_pretrained`: `ZOO_LM` if set, else the directory of a small trained decoder.

    Raises:
        LabError: `ZOO_LM` is a path without a model, or the cache cannot be written.
    """
    if named := os.environ.get("ZOO_LM"):
        return named_model("ZOO_LM", named, "HuggingFaceTB/SmolLM2-135M-Instruct")

    name = f"language-model-{VERSION}.{TEXT_VERSION}"
    return str(built(name, "a small language model (about a minute)", build))


def build(directory: Path, steps: int = STEPS) -> None:
    """Train in a process of its own, so that the caller trains nothing and draws no random number."""
    program = f"from bugs.lab.language_model import save; save({str(directory)!r}, {steps})"
    subprocess.run([sys.executable, "-c", program], check=True)


def tokenizer() -> PreTrainedTokenizerFast:
    """Train the tokenizer on the pages, and on the words of the tasks and of the template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    read = list(itertools.islice(pages(SEED), PAGES))
    asked = [" ".join(task) for task in itertools.islice(tasks(SEED), PAGES // 4)]
    turns = ["### User: \n### Assistant: "] * len(asked)
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator([*read, *asked, *turns], trainer)
    raw.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", raw.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        chat_template=TEMPLATE,
        model_max_length=512,
    )


def save(directory: str, steps: int = STEPS) -> None:
    """Train tokenizer and model, and write both, the same bytes each time on one machine."""
    import torch
    from torch.optim.lr_scheduler import LambdaLR
    from tqdm import tqdm
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums over several threads depend on their number
    words = tokenizer()
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=512,
        rope_parameters={"rope_type": "default", "rope_theta": ROTATION},
        tie_word_embeddings=True,
        initializer_range=WIDTH**-0.5 / 2,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    held = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in held]
    optimizers = [
        torch.optim.Muon(matrices, lr=0.02, weight_decay=0.0),  # half the steps that AdamW would need
        torch.optim.AdamW(others, LEARNING_RATE, betas=(0.9, 0.98)),
    ]
    schedules = [
        LambdaLR(optimizer, lambda step: min((step + 1) / WARM_UP, 1.0, 2 * (1 - step / steps)))
        for optimizer in optimizers
    ]
    texts = (page + words.eos_token for page in pages(SEED))
    with tqdm(total=steps, unit=" steps", desc="training a small language model", mininterval=1) as bar:
        for _ in range(steps):
            rows = list(itertools.islice(texts, ROWS))
            batch = words(rows, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
            labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
            model.zero_grad()
            loss = model(input_ids=batch["input_ids"], labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer, schedule in zip(optimizers, schedules, strict=True):
                optimizer.step()
                schedule.step()
            bar.set_postfix(loss=f"{loss.item():.2f}", refresh=False)
            bar.update()
    model.save_pretrained(directory)
    words.save_pretrained(directory)
