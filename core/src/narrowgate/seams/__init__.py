"""What a plugin implements: hook specs, descriptors, protocols."""

from narrowgate.seams.component import (
    API_VERSION,
    CheckContext,
    Component,
    Deps,
    Locality,
    Need,
    NoSettings,
    Plugin,
    Problem,
    Seam,
)
from narrowgate.seams.specs import ENTRY_POINT_GROUP, hookimpl

__all__ = [
    "API_VERSION",
    "ENTRY_POINT_GROUP",
    "CheckContext",
    "Component",
    "Deps",
    "Locality",
    "Need",
    "NoSettings",
    "Plugin",
    "Problem",
    "Seam",
    "hookimpl",
]
