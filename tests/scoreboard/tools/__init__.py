"""How each tool is asked: one file a tool, with what its documentation says to write around a training."""
