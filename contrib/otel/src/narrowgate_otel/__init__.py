"""Observations as OpenTelemetry spans and metrics; see the README."""
