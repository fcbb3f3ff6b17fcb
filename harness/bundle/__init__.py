"""Probes in a folder, for machines without network: packed here, run there by one script, and absorbed here again."""

from harness.bundle.absorbing import Absorbed, Taken, absorb
from harness.bundle.installed import Installed, read_installed
from harness.bundle.packing import Packed, Packer, WantedProbe

__all__ = ["Absorbed", "Installed", "Packed", "Packer", "Taken", "WantedProbe", "absorb", "read_installed"]
