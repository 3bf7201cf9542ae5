"""Query analysis, channels, admission, fusion, the second stage, the trace."""
