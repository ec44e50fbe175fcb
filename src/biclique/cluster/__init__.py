"""Every estimator: validate, compose, store."""
