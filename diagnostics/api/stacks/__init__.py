"""Callbacks for libraries that train PyTorch models in their own loops."""
