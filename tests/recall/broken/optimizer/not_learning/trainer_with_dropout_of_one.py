"""A Trainer whose model drops every activation: a percentage was taken for a share, and clipped to 1."""

# names: not-learning, unreached-parameters
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments
from transformers.modeling_outputs import SequenceClassifierOutput


class BagConfig(PretrainedConfig):
    model_type = "bag"

    def __init__(self, dropout_percent=10, **kwargs):
        super().__init__(**kwargs)
        self.dropout_percent = dropout_percent


class Bag(PreTrainedModel):
    config_class = BagConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(40, 32)
        self.dropout = nn.Dropout(min(1.0, config.dropout_percent / 1.0))
        self.classifier = nn.Linear(32, 2)
        self.post_init()

    def forward(self, input_ids=None, labels=None):
        logits = self.classifier(self.dropout(self.embed(input_ids).mean(dim=1)))
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)


torch.manual_seed(0)
ids = torch.randint(0, 40, (800, 12))
labels = (ids < 20).float().mean(1).gt(0.5).long()
rows = [{"input_ids": one, "labels": label} for one, label in zip(ids, labels)]
arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=32, num_train_epochs=8, learning_rate=5e-3,
    logging_steps=50, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
)  # fmt: skip
Trainer(model=Bag(BagConfig()), args=arguments, train_dataset=rows).train()
