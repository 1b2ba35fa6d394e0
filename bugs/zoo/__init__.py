"""The machinery of the zoo: `keeper` runs and verifies the exhibits, `learner` gives readers copies to fix."""
