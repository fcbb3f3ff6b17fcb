"""Packs probes into a folder for a machine without network, where a script runs them, and absorbs the results."""

from harness.bundle.absorbing import Absorbed, Taken, absorb
from harness.bundle.packing import Packed, Packer, WantedProbe, read_installed
