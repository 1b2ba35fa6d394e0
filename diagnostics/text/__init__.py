"""Text that rules and reports share: joining words, naming parameters, escaping."""
