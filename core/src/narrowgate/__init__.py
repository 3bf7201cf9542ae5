"""Governed recall: recall wide, decide narrow."""
