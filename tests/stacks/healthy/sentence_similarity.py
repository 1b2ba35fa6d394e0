"""Sentence Transformers' trainer on scored pairs: a cosine similarity from 0 to 1.

python sentence_similarity.py
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
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, PrinterCallback, set_seed

RATE, STEPS, BATCH = 1e-3, 40, 16
LEAST, MOST = 0.0, 1.0  # the range of the scores

set_seed(0)
words = ["[PAD]", "[UNK]", *(f"w{i}" for i in range(48))]
vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="[PAD]", unk_token="[UNK]")

examples = []
for _ in range(320):
    one = torch.randint(48, (6,))
    kept = int(torch.randint(7, (1,)))  # words that both sentences have
    other = torch.cat([one[torch.randperm(6)[:kept]], torch.randint(48, (6 - kept,))])
    texts = [" ".join(f"w{i}" for i in ids.tolist()) for ids in (one, other)]
    examples.append({"sentence1": texts[0], "sentence2": texts[1], "score": LEAST + (MOST - LEAST) * kept / 6})
dataset = Dataset.from_list(examples)

config = BertConfig(
    vocab_size=len(words),
    hidden_size=64,
    num_hidden_layers=1,
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
            logging_steps=10,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=dataset.select(range(256)),
        eval_dataset=dataset.select(range(256, 320)),
        loss=losses.CosineSimilarityLoss(model),
    )
    trainer.remove_callback(PrinterCallback)  # it prints run times
    trainer.train()
    print(f"eval_loss={trainer.evaluate()['eval_loss']:.6f}")
optimizer = trainer.optimizer
