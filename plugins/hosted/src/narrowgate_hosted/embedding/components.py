"""What the plugin offers of this: descriptors alone; nothing heavy is imported here."""

from __future__ import annotations

from typing import Final

from narrowgate.seams import Component

EMBEDDERS: Final[tuple[Component, ...]] = ()
