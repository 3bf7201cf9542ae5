"""Rescoring: what stored answers of a backend would have led to under other thresholds or another mapping."""
