"""Governed recall: recall wide, decide narrow.

The names below are the public face. They are loaded when they are first used, so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from narrowgate.errors import (
        BatchRefusedError,
        CapabilityError,
        ChannelError,
        CompositionError,
        ConfigError,
        ConflictError,
        DeadlineError,
        DecisionError,
        EntryReferenceError,
        FilterError,
        InputError,
        NarrowgateError,
        RecallError,
        RerankError,
        StoreError,
        TextError,
    )
    from narrowgate.host.composition import Composition, Diagnosis, diagnose, inventory, plan
    from narrowgate.host.config import Config, load_config
    from narrowgate.host.discovery import Discovery, PluginRecord
    from narrowgate.host.policy_set import PolicySet, inspect_policies
    from narrowgate.host.report import render as render_problems
    from narrowgate.host.runtime import Narrowgate, open  # noqa: A004 - used as narrowgate.open
    from narrowgate.host.sync import SyncNarrowgate, open_sync
    from narrowgate.host.tracing import DroppedCopy, PluginTrace
    from narrowgate.values.decision import Usage
    from narrowgate.values.entry import Change, EntryDraft, EntryVersion, ItemOutcome, MemoryHead, WriteReceipt
    from narrowgate.values.filters import Filter, parse_filter
    from narrowgate.values.identity import EntryRef
    from narrowgate.values.search import Candidate, Hit, Mode, SearchPage, SearchTrace, Verdict

_HOMES: Final = {
    "errors": (
        "BatchRefusedError CapabilityError ChannelError CompositionError ConfigError ConflictError DeadlineError "
        "DecisionError EntryReferenceError FilterError InputError NarrowgateError RecallError RerankError StoreError "
        "TextError"
    ),
    "host.composition": "Composition Diagnosis diagnose inventory plan",
    "host.config": "Config load_config",
    "host.discovery": "Discovery PluginRecord",
    "host.tracing": "DroppedCopy PluginTrace",
    "host.policy_set": "PolicySet inspect_policies",
    "host.report": "render_problems",
    "host.runtime": "Narrowgate open",
    "host.sync": "SyncNarrowgate open_sync",
    "values.decision": "Usage",
    "values.entry": "Change EntryDraft EntryVersion ItemOutcome MemoryHead WriteReceipt",
    "values.filters": "Filter parse_filter",
    "values.identity": "EntryRef",
    "values.search": "Candidate Hit Mode SearchPage SearchTrace Verdict",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}
_NAMES_THERE: Final = {"render_problems": "render"}

__all__ = [
    "BatchRefusedError",
    "Candidate",
    "CapabilityError",
    "Change",
    "ChannelError",
    "Composition",
    "CompositionError",
    "Config",
    "ConfigError",
    "ConflictError",
    "DeadlineError",
    "DecisionError",
    "Diagnosis",
    "Discovery",
    "DroppedCopy",
    "EntryDraft",
    "EntryRef",
    "EntryReferenceError",
    "EntryVersion",
    "Filter",
    "FilterError",
    "Hit",
    "InputError",
    "ItemOutcome",
    "MemoryHead",
    "Mode",
    "Narrowgate",
    "NarrowgateError",
    "PluginRecord",
    "PluginTrace",
    "PolicySet",
    "RecallError",
    "RerankError",
    "SearchPage",
    "SearchTrace",
    "StoreError",
    "SyncNarrowgate",
    "TextError",
    "Usage",
    "Verdict",
    "WriteReceipt",
    "diagnose",
    "inspect_policies",
    "inventory",
    "load_config",
    "open",
    "open_sync",
    "parse_filter",
    "plan",
    "render_problems",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'narrowgate' has no attribute {name!r}")
    value = getattr(import_module(f"narrowgate.{_HOME_OF[name]}"), _NAMES_THERE.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
