"""Sentence Transformers' trainer on pairs: questions and their answers, negatives from the batch.

python sentence_pairs.py
"""

import tempfile

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from sentence_transformers.sentence_transformer.training_args import BatchSamplers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, PrinterCallback, set_seed

RATE, STEPS, BATCH = 1e-3, 40, 16

set_seed(0)
subjects = [
    "rivers",
    "stars",
    "bread",
    "trains",
    "cats",
    "rain",
    "music",
    "paper",
    "bees",
    "salt",
    "glass",
    "wool",
]
verbs = ["move", "shine", "rise", "sleep", "sound", "grow"]
words = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "how",
    "do",
    "why",
    "because",
    "of",
    "their",
    "nature",
    "they",
    *subjects,
    *verbs,
]
vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
vocabulary.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=vocabulary, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
)

pairs = [
    {"anchor": f"{ask} do {subject} {verb}", "positive": f"{subject} {verb} because of their nature"}
    for subject in subjects
    for verb in verbs
    for ask in ("how", "why")
]
order = torch.randperm(len(pairs)).tolist()
train_set = Dataset.from_list([pairs[i] for i in order[24:]])
eval_set = Dataset.from_list([pairs[i] for i in order[:24]])

config = BertConfig(
    vocab_size=len(words),
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    max_position_embeddings=32,
)
with tempfile.TemporaryDirectory() as folder:
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    encoder = Transformer(folder, max_seq_length=16)
    model = SentenceTransformer(modules=[encoder, Pooling(64)], device="cpu")
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            folder,
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            learning_rate=RATE,
            batch_sampler=BatchSamplers.NO_DUPLICATES,
            logging_steps=10,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=train_set,
        eval_dataset=eval_set,
        loss=losses.MultipleNegativesRankingLoss(model),
    )
    trainer.remove_callback(PrinterCallback)  # it prints run times
    trainer.train()
    print(f"eval_loss={trainer.evaluate()['eval_loss']:.6f}")
optimizer = trainer.optimizer
