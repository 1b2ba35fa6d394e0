"""The learner's loop: copy a cage's broken script, repair the copy, have it checked, go on to the next."""
