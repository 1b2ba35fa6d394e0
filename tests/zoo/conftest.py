"""PyTorch runs in these tests' process."""

from tests.support.torch_process import impatient_loaders as impatient_loaders
from tests.support.torch_process import one_thread as one_thread
from tests.support.torch_process import simulated_device as simulated_device
from tests.support.torch_process import torch_forks as torch_forks
