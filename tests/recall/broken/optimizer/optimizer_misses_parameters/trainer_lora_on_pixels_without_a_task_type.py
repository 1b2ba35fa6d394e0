"""LoRA on a small vision transformer with Trainer: no task type, so its new classifier is frozen and random."""

# names: optimizer-misses-parameters
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    ViTForMaskedImageModeling,
    set_seed,
)

set_seed(9)
config = ViTConfig(
    hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=16, patch_size=4,
    num_channels=1, num_labels=4, encoder_stride=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip


def picture():
    label = int(torch.randint(4, ()))
    pixels = 0.3 * torch.randn(1, 16, 16)
    row, column = 8 * (label // 2), 8 * (label % 2)
    pixels[:, row : row + 8, column : column + 8] += 1.0
    return {"pixel_values": pixels, "labels": label}


with tempfile.TemporaryDirectory() as folder:
    ViTForMaskedImageModeling(config).save_pretrained(folder)
    model = ViTForImageClassification.from_pretrained(folder, num_labels=4)
    model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]))
    args = TrainingArguments(
        folder, max_steps=80, per_device_train_batch_size=32, learning_rate=2e-3, logging_steps=20, report_to=[],
        save_strategy="no", use_cpu=True, disable_tqdm=True, label_names=["labels"],
    )  # fmt: skip
    trainer = Trainer(
        model, args, train_dataset=[picture() for _ in range(600)], eval_dataset=[picture() for _ in range(80)]
    )
    trainer.train()
    print(round(trainer.evaluate()["eval_loss"], 3))
