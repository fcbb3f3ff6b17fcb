"""Probes to carry: a folder that runs on a machine without network, and its observations taken back."""
