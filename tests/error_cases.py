"""Configurations and plugins at fault, by the code of the problem that each has: those that docs/error-codes.md shows."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs

from narrowgate.governance.files import read_policy
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.records import PromotionRecord, append_record
from narrowgate.values.assessment import GateMode

_HEAD: Final = """
from contextlib import asynccontextmanager
import attrs
from narrowgate.seams import Component, Locality, Need, Plugin, Seam, hookimpl
from narrowgate.values.secret import Secret
@attrs.frozen(kw_only=True)
class Service:
    url: str
    api_key: Secret
@attrs.frozen(kw_only=True)
class Nothing:
    pass
def refuse(settings, context):
    raise ValueError
@asynccontextmanager
async def build(settings, deps):
    {build}
PLUGIN = Plugin("{id}", (1, 0))
def offer(name, seam, settings=Nothing, **more):
    return Component(name=f"{id}.{name}", seam=seam, summary="s", build=build, settings=settings, **more)
"""


def plugin(*hooks: str, build: str = "yield object()") -> str:
    """Return the source of a plugin: `hook: expression` for each of its hooks."""
    written = [
        f"@hookimpl\ndef narrowgate_{name}():\n    return [{offer}]\n" for name, offer in (x.split(": ", 1) for x in hooks)
    ]
    return "\n".join([_HEAD.replace("{build}", build), *written])


CHAT: Final = """
from narrowgate_http import HttpSettings, check_http, locality
def checked(settings, context):
    return check_http(settings, "{id}.writer", key=True, key_hint="MODELS_API_KEY")
@hookimpl
def narrowgate_generators():
    return [offer("writer", Seam.GENERATOR, HttpSettings, locality=locality, check=checked)]
"""
STORE: Final = "entry_stores: offer('store', Seam.ENTRY_STORE)"
GOOD: Final = plugin(STORE)
NEED: Final = plugin("entry_stores: offer('store', Seam.ENTRY_STORE, Service)")
JUDGE: Final = plugin("decision_backends: offer('judge', Seam.DECISION_BACKEND)")
CHAN: Final = plugin(
    STORE,
    "recall_channels: offer('vector', Seam.RECALL_CHANNEL, needs=(Need(Seam.EMBEDDER),))",
    "rerankers: offer('judge', Seam.RERANKER, needs=(Need(Seam.DECISION_BACKEND),))",
)


PROBED: Final = """
async def broken(built):
    raise OSError
@hookimpl
def narrowgate_entry_stores():
    return [offer("store", Seam.ENTRY_STORE, probe=broken)]
"""


@attrs.frozen
class Case:
    """What brings a problem about: distributions (name -> (plugin's id, version, source)), a configuration, other files."""

    config: str = '[use]\nstore = "bad.store"\n'
    plugins: Mapping[str, tuple[str, str, str]] = attrs.field(factory=dict)
    files: Mapping[str, str] = attrs.field(factory=dict)

    def but(self, old: str, new: str) -> Case:
        """Return the case with one piece of the configuration replaced."""
        assert old in self.config
        return attrs.evolve(self, config=self.config.replace(old, new))


def bad(source: str) -> Case:
    """Return the case of one faulty plugin that is in use."""
    return Case(plugins={"bad": ("bad", "1.0", source)})


def using(config: str, **sources: str) -> Case:
    """Return the case of a configuration with sound plugins."""
    return Case(config, {name: (name, "1.0", source) for name, source in sources.items()})


def service(key: str) -> Case:
    """Return the case of a component with a secret."""
    config = f'[use]\nstore = "need.store"\n[settings."need.store"]\nurl = "https://service.example"\napi_key = {key}\n'
    return using(config, need=NEED)


def calling(
    base_url: str = "https://models.example/v1", key: str = '{ env = "KEY" }', more: str = "", rest: str = ""
) -> Case:
    """Return the case of a component that calls a server."""
    written = f'base_url = "{base_url}"\n' + (f"api_key = {key}\n" if key else "") + more
    config = f'[use]\nstore = "good.store"\ngenerator = "chat.writer"\n{rest}[settings."chat.writer"]\n{written}'
    return using(config, good=GOOD, chat=plugin() + CHAT)


POLICY: Final = """\
policy_id = "team.write.v1"
decision_kind = "memory.write-gate"
version = "1"
consumer = "memory_write_gate"
mode = "shadow"
failure_policy = "fail_open"
privacy_boundary = "local_only"
local_rules = []
subject_selector = "entry.text"
evidence_selector = "entry.evidence"
outcome_mapping = { yes = "allow", no = "deny" }
effect = "hold"

[question]
en = "Does the cited evidence support this entry?"
zh = "所引用的证据是否支持这条记忆？"

[promotion_criteria]
min_precision = 0.95
"""
JUDGES: Final = """
@hookimpl
def narrowgate_decision_backends():
    return [offer("near", Seam.DECISION_BACKEND), offer("far", Seam.DECISION_BACKEND, locality=Locality.HOSTED)]
"""


def governed(text: str = POLICY, *, lock: str = "", backend: str = "near", more: str = "") -> Case:
    """Return the case of one policy file, with a backend that answers its question."""
    config = f'[use]\nstore = "good.store"\nchannels = "none"\ndecision_backend = "good.{backend}"\n'
    case = using(config + f'[policies]\nfiles = ["write.toml"]\n{more}', good=GOOD + JUDGES)
    return attrs.evolve(case, files={"write.toml": text, **({"policies.lock": lock} if lock else {})})


def demoted() -> Case:
    """Return the case of a policy that is asked to enforce after a rule took its power back."""
    case = governed(more='modes = { "team.write.v1" = "enforcing" }\n')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "write.toml")
        path.write_text(POLICY, encoding="utf-8")
        policy = read_policy(path).policy
        assert policy is not None
        record = PromotionRecord(
            policy_id=policy.policy_id,
            version=policy.version,
            fingerprint=fingerprint(policy),
            mode=GateMode.SHADOW,
            previous=GateMode.ENFORCING,
            effect=policy.effect,
            author=policy.author,
            approver="automatic-demotion",
            decided_at=datetime(2026, 3, 1, tzinfo=UTC),
            evidence={},
            measured={},
            reason="fallback_rate",
            automatic=True,
        )
        line = append_record(Path(folder), record).read_text(encoding="utf-8")
    return attrs.evolve(case, files={**case.files, "promotions/team.write.v1.jsonl": line})


HOST: Final[dict[str, Case]] = {
    "unknown-key": using("[search]\nlmit = 5\n", good=GOOD),
    "wrong-setting": using('[search]\nlimit = "ten"\n', good=GOOD),
    "missing-setting": using('[settings."need.store"]\napi_key = { env = "KEY" }\n', need=NEED),
    "literal-secret": service('"sk-123"'),
    "missing-secret": service('{ env = "SERVICE_KEY" }'),
    "unreadable-secret": service('{ file = "key.txt" }'),
    "plugin-id": bad(GOOD.replace('Plugin("{id}"', 'Plugin("other"')),
    "plugin-clash": Case('[use]\nstore = "twin.store"\n', {"first": ("twin", "1.0", GOOD), "second": ("twin", "2.5", GOOD)}),
    "import-failed": bad("import a_module_that_is_not_there"),
    "no-plugin-record": bad("x = 1"),
    "api-mismatch": bad(GOOD.replace("(1, 0)", "(2, 0)")),
    "unknown-hook": bad(GOOD.replace("narrowgate_entry_stores", "narrowgate_entry_store")),
    "bad-signature": bad(GOOD.replace("narrowgate_entry_stores()", "narrowgate_entry_stores(config)")),
    "hook-failed": bad(plugin("entry_stores: {}['x']")),
    "bad-contribution": bad(
        plugin("entry_stores: Component(name='another.store', seam=Seam.ENTRY_STORE, summary='', build=build)")
    ),
    "component-clash": bad(plugin("entry_stores: " + "offer('store', Seam.ENTRY_STORE), " * 2)),
    "nothing-contributed": bad(plugin()),
    "unknown-plugin": using('[plugins]\ndisabled = ["goud"]\n', good=GOOD),
    "plugin-not-installed": using('[use]\nstore = "goood.store"\n', good=GOOD),
    "plugin-disabled": using('[use]\nstore = "other.store"\n[plugins]\ndisabled = ["other"]\n', other=GOOD),
    "unknown-component": using('[use]\nstore = "good.stoer"\n', good=GOOD),
    "wrong-seam": using('[use]\nembedder = "good.store"\n', good=GOOD),
    "no-store": using(""),
    "store-ambiguous": using("", one=GOOD, two=GOOD),
    "need-unmet": using('[use]\nchannels = "none"\nreranker = "chan.judge"\n', chan=CHAN),
    "need-ambiguous": using('[use]\nchannels = "none"\nreranker = "chan.judge"\n', chan=CHAN, one=JUDGE, two=JUDGE),
    "channel-left-out": using("", chan=CHAN),
    "no-channels": using("", good=GOOD),
    "no-sinks": governed(),
    "unknown-policy": governed(more='use = ["memory.write.evidence_suficiency.v1"]\n'),
    "policy-clash": attrs.evolve(
        governed().but('files = ["write.toml"]', 'files = ["*.toml"]'), files={"team.toml": POLICY, "write.toml": POLICY}
    ),
    "bad-policy": governed(POLICY.replace('"deny"', '"reject"').replace("privacy_boundary", "privacy_boundry")),
    "policy-lock": governed(lock="team.write.v1 1\n"),
    "policy-changed": governed(lock="team.write.v1\t1\t" + "0" * 64 + "\n"),
    "policy-unlocked": governed(),
    "not-promoted": governed(more='modes = { "team.write.v1" = "enforcing" }\n'),
    "policy-demoted": demoted(),
    "privacy-boundary": governed(backend="far"),
    "not-local": calling(rest="[privacy]\nlocal_only = true\n"),
    "check-failed": bad(plugin("entry_stores: offer('store', Seam.ENTRY_STORE, check=refuse)")),
    "probe-failed": bad(plugin() + PROBED),
    "build-failed": bad(plugin(STORE, build="raise OSError\n    yield")),
}


HTTP: Final[dict[str, Case]] = {
    "bad-url": calling("models.example/v1"),
    "insecure-url": calling("http://models.example/v1"),
    "missing-key": calling(key=""),
    "missing-file": calling(more='ca_file = "ca.pem"\n'),
}
