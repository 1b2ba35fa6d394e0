"""What collectors hand to rules: frozen values, and no framework."""
