"""What a rank notes for a comparison with the others; no collective is made."""
