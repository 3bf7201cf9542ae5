"""Measuring: labelled collections in, figures out. `ranking` and `judging` are pure; `run` asks a composition."""
