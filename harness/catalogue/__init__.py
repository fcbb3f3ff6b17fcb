"""The catalogue of known regressions: the repros that say what is true of their bug."""
