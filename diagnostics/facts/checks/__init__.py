"""Facts that checks of tests take: of two functions, of items and batches, of gradients."""
