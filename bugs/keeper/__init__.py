"""The zoo's own program: it opens a cage, and checks that every cage holds what it should."""
