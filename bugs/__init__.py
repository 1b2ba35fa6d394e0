"""The exhibits, one folder each; `bugs.lab` has what their scripts need, `bugs.zoo` runs and checks them."""
