"""Collectors turn frameworks' objects into facts. They import neither rules nor reports."""
