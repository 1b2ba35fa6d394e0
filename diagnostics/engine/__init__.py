"""What a rule is, how rules are evaluated, and what they find."""
