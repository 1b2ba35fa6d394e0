"""The zoo's own program: it opens an exhibit, and checks that every exhibit holds what it should."""
