"""Observations as log records and as JSONL files; see the README."""
