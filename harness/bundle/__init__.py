"""Packs probes into a folder for a machine without network, where a script runs them, and absorbs the results."""

from harness.bundle.absorbing import Absorbed, Taken, absorb
from harness.bundle.installed import Installed, read_installed
from harness.bundle.packing import Packed, Packer, WantedProbe

__all__ = ["Absorbed", "Installed", "Packed", "Packer", "Taken", "WantedProbe", "absorb", "read_installed"]
