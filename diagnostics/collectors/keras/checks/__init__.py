"""What tests of Keras and TensorFlow code need: calls with gradients, gradients of a step."""
