"""The zoo: one folder an exhibit, `bugs.lab` under their feet, `bugs.keeper` to look after them."""
