"""The calls of a loop whose order matters: backward, step, clipping, `state_dict` and `load_state_dict`."""
