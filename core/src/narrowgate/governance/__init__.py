"""Policies, gates, observations: how a narrow decision starts in shadow and gains power on evidence alone."""
