"""Language models: structured generation, and yes/no decisions by it."""
