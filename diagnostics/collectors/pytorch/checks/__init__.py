"""What tests of PyTorch code need: calls with gradients, workers, gradients of a step."""
