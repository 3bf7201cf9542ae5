"""Local rules: what code answers without asking anybody. Pure functions of what the gate gathered."""
