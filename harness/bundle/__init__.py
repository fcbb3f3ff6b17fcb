"""Probes in a folder, for machines without network: packed here, run there by one script, and absorbed here again."""

from harness.bundle.absorbing import Absorbed, Taken, absorb
from harness.bundle.installed import Installed, read_installed
from harness.bundle.packing import Asked, Packed, Packer

__all__ = ["Absorbed", "Asked", "Installed", "Packed", "Packer", "Taken", "absorb", "read_installed"]
