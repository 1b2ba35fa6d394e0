"""Probes know a framework and no rule: they turn what they see into facts."""
