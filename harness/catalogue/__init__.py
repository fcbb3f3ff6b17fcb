"""The catalogue of known regressions: its entries, what looks like one, and repros drafted from reports."""
