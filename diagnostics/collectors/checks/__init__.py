"""What tests of user code need to know: named axes, differing values, items and batches; no framework."""
