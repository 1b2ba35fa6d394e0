"""Lightning in, facts out: a LightningModule that is examined, or that a Trainer trains."""
