"""The codes of every Problem that the host itself reports. Each has a section in docs/error-codes.md."""

from __future__ import annotations

from typing import Final

# The configuration.
UNKNOWN_KEY: Final = "unknown-key"
WRONG_SETTING: Final = "wrong-setting"
MISSING_SETTING: Final = "missing-setting"
LITERAL_SECRET: Final = "literal-secret"  # noqa: S105 - a code, no password
MISSING_SECRET: Final = "missing-secret"  # noqa: S105
UNREADABLE_SECRET: Final = "unreadable-secret"  # noqa: S105

# A plugin.
PLUGIN_ID: Final = "plugin-id"
PLUGIN_CLASH: Final = "plugin-clash"
IMPORT_FAILED: Final = "import-failed"
NO_PLUGIN_RECORD: Final = "no-plugin-record"
API_MISMATCH: Final = "api-mismatch"
UNKNOWN_HOOK: Final = "unknown-hook"
BAD_SIGNATURE: Final = "bad-signature"
HOOK_FAILED: Final = "hook-failed"
BAD_CONTRIBUTION: Final = "bad-contribution"
COMPONENT_CLASH: Final = "component-clash"
NOTHING_CONTRIBUTED: Final = "nothing-contributed"

# The composition.
UNKNOWN_PLUGIN: Final = "unknown-plugin"
PLUGIN_NOT_INSTALLED: Final = "plugin-not-installed"
PLUGIN_DISABLED: Final = "plugin-disabled"
UNKNOWN_COMPONENT: Final = "unknown-component"
WRONG_SEAM: Final = "wrong-seam"
NO_STORE: Final = "no-store"
STORE_AMBIGUOUS: Final = "store-ambiguous"
NEED_UNMET: Final = "need-unmet"
NEED_AMBIGUOUS: Final = "need-ambiguous"
CHANNEL_LEFT_OUT: Final = "channel-left-out"
NO_CHANNELS: Final = "no-channels"
NO_SINKS: Final = "no-sinks"
UNKNOWN_POLICY: Final = "unknown-policy"
POLICY_CLASH: Final = "policy-clash"
POLICY_LOCK: Final = "policy-lock"
NOT_PROMOTED: Final = "not-promoted"
POLICY_DEMOTED: Final = "policy-demoted"
PRIVACY_BOUNDARY: Final = "privacy-boundary"
NOT_LOCAL: Final = "not-local"
CHECK_FAILED: Final = "check-failed"
PROBE_FAILED: Final = "probe-failed"
BUILD_FAILED: Final = "build-failed"
