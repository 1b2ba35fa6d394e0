"""Facts pass from collectors to rules: frozen values, no framework."""
