"""Group-relative policy optimisation with TRL: the reward counts how often the policy says one word.

python trl_grpo.py
"""

import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, PrinterCallback, set_seed
from trl import GRPOConfig, GRPOTrainer

RATE, STEPS, BATCH = 1e-3, 12, 16

set_seed(0)
words = ["<pad>", "<eos>", "the", "sky", "sea", "is", "blue", "red", "green", "dark", "?"]
vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=vocabulary, pad_token="<pad>", eos_token="<eos>", padding_side="left"
)
dataset = Dataset.from_list([{"prompt": "the sky is"}, {"prompt": "the sea is"}] * 32)


def says_blue(completions, **_):
    """Return the share of words that are "blue", for each completion."""
    return [text.split().count("blue") / max(len(text.split()), 1) for text in completions]


model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(words), n_positions=32, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1
    )
)
model.generation_config.pad_token_id = 0
with tempfile.TemporaryDirectory() as folder:
    trainer = GRPOTrainer(
        model,
        reward_funcs=says_blue,
        args=GRPOConfig(
            folder,
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            num_generations=4,
            max_completion_length=6,
            learning_rate=RATE,
            logging_steps=4,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
        ),
        train_dataset=dataset,
        processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)  # it prints run times
    trainer.train()
optimizer = trainer.optimizer
rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
print(f"reward={rewards[0]:.4f} to {rewards[-1]:.4f}")
