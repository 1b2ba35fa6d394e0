"""The learner's loop: copy an exhibit's broken script, repair the copy, have it checked, go on to the next."""
