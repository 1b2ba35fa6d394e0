"""Facts of a Hugging Face `Trainer`."""
