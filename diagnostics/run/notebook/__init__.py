"""A notebook's cell under `%%diagnose`."""
