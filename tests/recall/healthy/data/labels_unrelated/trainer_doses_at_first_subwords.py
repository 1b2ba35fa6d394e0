"""Trainer: tags of prescriptions on the first byte-level BPE token of each word.

After https://github.com/yuanxiaosc/BERT-for-Sequence-Labeling-and-Text-Classification/issues/17
"""

import random
import tempfile

from tokenizers import ByteLevelBPETokenizer, processors
from transformers import (
    DataCollatorForTokenClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)  # fmt: skip

set_seed(4)
PARTS = ["amo", "xi", "cil", "ibu", "pro", "fen", "met", "for", "lor", "za", "pam", "tri"]
OTHER = "take one before meals in the evening with water do not drive and call us if pain stays"
NONE, DRUG, DOSE, FORM = range(4)


def prescription():
    words, tags = [], []
    for _ in range(random.randint(2, 3)):
        plain = random.choices(OTHER.split(), k=random.randint(1, 4))
        drug = "".join(random.choices(PARTS, k=random.randint(2, 4))) + "in"
        words += [*plain, drug, f"{random.randint(5, 990)}mg", random.choice(["tablet", "drops", "syrup"])]
        tags += [*[NONE] * len(plain), DRUG, DOSE, FORM]
    return words, tags


notes = [prescription() for _ in range(600)]
bpe = ByteLevelBPETokenizer(add_prefix_space=True)
bpe.train_from_iterator(
    (" ".join(words) for words, _ in notes),
    vocab_size=330,
    special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
    show_progress=False,
)
bpe._tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=bpe._tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
)


def encode(words, tags):
    encoded = tokenizer(words, is_split_into_words=True, truncation=True, max_length=120)
    labels, before = [], None
    for word in encoded.word_ids():
        labels.append(-100 if word is None or word == before else tags[word])
        before = word
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"], "labels": labels}


model = RobertaForTokenClassification(
    RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=130,
        num_labels=4,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=4,
        per_device_train_batch_size=16,
        learning_rate=1e-3,
        logging_steps=25,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=[encode(*note) for note in notes],
        data_collator=DataCollatorForTokenClassification(tokenizer),
    )
    trainer.train()
