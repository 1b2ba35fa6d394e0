"""Facts from the operating system and the GPU driver."""
