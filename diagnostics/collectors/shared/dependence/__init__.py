"""What the dependence measurements of several frameworks share."""
