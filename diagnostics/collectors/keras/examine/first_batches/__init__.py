"""Examines a training of the script by the batches that it takes itself."""
