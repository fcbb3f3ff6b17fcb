"""Turns a question into a plan: releases to try, ends, other packages."""
