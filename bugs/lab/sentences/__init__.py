"""The generated corpus's sentences: material, and how pairs are made of it."""
