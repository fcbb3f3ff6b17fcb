"""What is copied into a bundle and runs there: standard library only, Python 3.9 and later."""
