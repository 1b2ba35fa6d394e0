"""Frameworks in, facts out. Collectors know no rule and no report."""
