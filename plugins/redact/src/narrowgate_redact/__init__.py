"""Redaction: one sanitiser for content that leaves this machine and for logs."""
