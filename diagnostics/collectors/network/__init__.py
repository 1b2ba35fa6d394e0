"""Tries the network between the ranks of a job, in child processes that can be given up."""
