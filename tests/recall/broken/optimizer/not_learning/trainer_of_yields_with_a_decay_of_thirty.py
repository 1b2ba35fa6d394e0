"""Crop yields from soil and weather: the weight decay of a configuration file is 30."""

# names: not-learning
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(8)
soil = torch.randn(1500, 9)
tons = 0.8 * soil[:, 0] - 0.5 * soil[:, 3] + 0.4 * soil[:, 7] + 0.1 * torch.randn(1500)
fields = [{"soil": one, "labels": ton} for one, ton in zip(soil, tons, strict=True)]


class Yields(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(9, 40)
        self.out = nn.Linear(40, 1)

    def forward(self, soil, labels=None):
        answer = self.out(torch.relu(self.hidden(soil))).squeeze(1)
        loss = None if labels is None else nn.functional.mse_loss(answer, labels)
        return {"loss": loss, "logits": answer}


arguments = TrainingArguments(
    output_dir="out",
    num_train_epochs=8,
    per_device_train_batch_size=32,
    learning_rate=4e-3,
    weight_decay=30.0,
    use_cpu=True,
    report_to="none",
    save_strategy="no",
    disable_tqdm=True,
)
Trainer(model=Yields(), args=arguments, train_dataset=fields).train()
