"""Seq2SeqTrainer with generation in evaluation: a tiny BART translates digits to letters.

python seq2seq_generation.py
"""

import tempfile

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    set_seed,
)

RATE, EPOCHS, BATCH, ROWS = 3e-3, 8, 16, 384

set_seed(0)
words = ["<s>", "<pad>", "</s>", "<unk>", *"0123456789", *"abcdefghij"]
vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
vocabulary.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=vocabulary, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
)

digits = [torch.randint(10, (int(torch.randint(2, 5, (1,))),)).tolist() for _ in range(ROWS)]
raw = Dataset.from_dict(
    {
        "source": [" ".join(map(str, d)) for d in digits],
        "target": [" ".join("abcdefghij"[i] for i in d) for d in digits],
    }
)


def preprocess(examples):
    return tokenizer(
        examples["source"], text_target=examples["target"], max_length=16, truncation=True,
        return_token_type_ids=False,
    )  # fmt: skip


tokenized = raw.map(preprocess, batched=True, remove_columns=raw.column_names)
model = BartForConditionalGeneration(
    BartConfig(
        vocab_size=len(words),
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=32,
        init_std=0.1,
        forced_eos_token_id=None,
    )
)


def compute_metrics(eval_preds):
    predictions, labels = eval_preds
    predictions = np.where(predictions != -100, predictions, tokenizer.pad_token_id)
    labels = np.where(labels != -100, labels, tokenizer.pad_token_id)
    decoded = tokenizer.batch_decode(predictions, skip_special_tokens=True)
    wanted = tokenizer.batch_decode(labels, skip_special_tokens=True)
    return {"exact_match": float(np.mean([d.strip() == w.strip() for d, w in zip(decoded, wanted, strict=True)]))}


with tempfile.TemporaryDirectory() as folder:
    trainer = Seq2SeqTrainer(
        model,
        Seq2SeqTrainingArguments(
            folder,
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=32,
            learning_rate=RATE,
            eval_strategy="epoch",
            predict_with_generate=True,
            generation_max_length=12,
            logging_steps=10,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=tokenized.select(range(320)),
        eval_dataset=tokenized.select(range(320, ROWS)),
        processing_class=tokenizer,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        compute_metrics=compute_metrics,
    )
    trainer.remove_callback(PrinterCallback)  # it prints run times
    trainer.train()
    final = trainer.evaluate()
optimizer = trainer.optimizer
print(f"eval_loss={final['eval_loss']:.6f} exact_match={final['eval_exact_match']:.4f}")
