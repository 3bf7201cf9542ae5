"""`policy list`, `show`, `lint`, `lock`: what decision policies say, and whether they are what was reviewed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
import tomli_w
from rich.text import Text

from narrowgate import Config, PolicySet, diagnose, inspect_policies, load_config, render_problems
from narrowgate.errors import CompositionError, InputError
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.fingerprint import fingerprint, plain
from narrowgate.governance.lockfile import Lock, read_lock, write_lock
from narrowgate.governance.records import read_records, standing
from narrowgate.seams.component import Problem
from narrowgate.values.policy import DecisionPolicy
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option
from narrowgate_cli.failures import problem_json
from narrowgate_cli.output import console, count, note, write_json
from narrowgate_cli.session import overrides


@attrs.frozen(kw_only=True)
class Known:
    """A policy with what the composition makes of it.

    Attributes:
        policy: what it says, in the mode that it runs in.
        used: whether the configuration names it.
        backend: full name of the backend that it would ask; `None` where there is none, or where nothing can run.
        locked: `yes`, `no`, or `changed` where the lock holds another content of this version.
    """

    policy: DecisionPolicy
    used: bool
    backend: str | None
    locked: str


@click.command("list", cls=Command)
@common
@json_option
def list_(place: Place, as_json: bool) -> int:
    """List the decision policies: those that take part, and those that are built in.

    For each its version, mode, consumer, the backend that it would ask, its local rules, its privacy boundary, and whether
    the lock holds exactly this content. What takes part comes first. With a policy that cannot be read the exit code is 2,
    and the others are listed.
    """
    config = _config(place)
    _, known, problems = _known(config)
    errors = [problem for problem in problems if problem.severity == "error"]
    if as_json:
        write_json({"policies": [_row_json(item) for item in known], "problems": [problem_json(item) for item in errors]})
        return exits.USAGE if errors else exits.OK
    out = console()
    for item in known:
        policy = item.policy
        mode = Text(policy.mode.value if item.used else "not in use", style="green" if item.used else "dim")
        head = Text(policy.policy_id, style="bold") + Text(f"  version {policy.version}  ") + mode
        # One line each, however narrow the terminal is: what is cut in two cannot be searched for.
        out.print(head + Text(f"  locked: {item.locked}"), soft_wrap=True)
        rules = ", ".join(policy.local_rules) or "none"
        line = f"    {policy.consumer}, {policy.privacy_boundary}, backend: {item.backend or 'none'}, rules: {rules}"
        out.print(Text(line, style="dim"), soft_wrap=True)
    if errors:
        note(render_problems(errors, title=f"{count(len(errors), 'problem')} with policies"))
    return exits.USAGE if errors else exits.OK


@click.command(cls=Command)
@click.argument("policy_id", metavar="ID")
@click.option("--toml", "as_toml", is_flag=True, help="Print it as a policy file: the start of one of your own.")
@common
@json_option
def show(place: Place, policy_id: str, as_toml: bool, as_json: bool) -> int:
    """Show everything that one policy says.

    Its fields with the texts of its question, its fingerprint, whether it is locked, what must be shown before it may
    enforce, and the newest promotion record of exactly this content.
    """
    config = _config(place)
    found, known, problems = _known(config)
    item = next((item for item in known if item.policy.policy_id == policy_id), None)
    if item is None:
        errors = [problem for problem in problems if problem.severity == "error"]
        unread = f" ({count(len(errors), 'problem')} with policies: `narrowgate policy lint` tells)" if errors else ""
        names = ", ".join(item.policy.policy_id for item in known)
        raise InputError("unknown-policy", f"there is no policy {policy_id!r}{unread}: there is {names}")
    if as_toml:
        click.echo(_as_toml(item.policy), nl=False)
        return exits.OK
    shown = _shown_json(found, item)
    if as_json:
        write_json(shown)
        return exits.OK
    out = console()
    for name, value in shown.items():
        if isinstance(value, Mapping) and value:
            out.print(Text(name, style="bold"), soft_wrap=True)
            for key, inner in value.items():
                out.print(Text(f"  {key:<32}", style="dim") + Text(_text(inner)), soft_wrap=True)
        else:
            out.print(Text(f"{name:<20}", style="bold") + Text(_text(value)), soft_wrap=True)
    return exits.OK


@click.command(cls=Command)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@common
@json_option
def lint(place: Place, files: Sequence[Path], as_json: bool) -> int:
    """Check policy files without running anything.

    Without FILE, all policies of the configuration: their files, the lock and the promotion records. No plugin is loaded
    and no backend is asked; `narrowgate check` looks at those. All problems are told, each with file and line, and the exit
    code is then 2.
    """
    config = _config(place)
    found = inspect_policies(config, files or None)
    policies = found.policies
    problems = found.problems if files else (*config.problems, *found.problems)
    errors = [problem for problem in problems if problem.severity == "error"]
    warnings = [problem for problem in problems if problem.severity == "warning"]
    if as_json:
        write_json(
            {
                "ok": not errors,
                "problems": [problem_json(problem) for problem in errors],
                "warnings": [problem_json(problem) for problem in warnings],
                "policies": [_name_json(policy) for policy in policies],
            }
        )
        return exits.USAGE if errors else exits.OK
    out = console()
    if problems:
        out.print(
            Text(render_problems(problems, title=count(len(policies), "sound policy", "sound policies"))), soft_wrap=True
        )
    else:
        out.print(Text(f"ok: {count(len(policies), 'policy', 'policies')}", style="bold green"))
    return exits.USAGE if errors else exits.OK


@click.command(cls=Command)
@common
@json_option
def lock(place: Place, as_json: bool) -> int:
    """Enter the policies that take part into the lock.

    The lock says which content stands behind each id and version. What it holds is never overwritten: with a policy that
    changed under its version nothing is written, the exit code is 2, and the report says which field changed. The cure is
    to raise the version of the policy.
    """
    config = _config(place)
    found = inspect_policies(config)
    policies, path = found.policies, found.lock
    # A policy that may not enforce yet is locked all the same: it must be, before it is promoted.
    problems = (*config.problems, *found.own, *found.locked)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise CompositionError(errors, render_problems(errors, title="nothing was locked"))
    added = write_lock(path, policies)
    if as_json:
        write_json(
            {"lock": str(path.absolute()), "added": [_name_json(policy) for policy in added], "policies": len(policies)}
        )
        return exits.OK
    for policy in added:
        click.echo(f"locked {policy.policy_id} version {policy.version}  {fingerprint(policy)}")
    if not policies:
        note("no policy takes part: name one under [policies] use or files")
    elif not added:
        note(f"{path} holds {'it' if len(policies) == 1 else f'all {len(policies)}'} already")
    return exits.OK


def _config(place: Place) -> Config:
    return load_config(place.config, overrides=overrides(place))


def _known(config: Config) -> tuple[PolicySet, list[Known], list[Problem]]:
    """Return the policies of a configuration, those and the built-in ones that it does not name, and what is wrong.

    Where the whole cannot run for a reason that is no policy's, no backend is known, and a line on standard error says so.
    """
    found = inspect_policies(config)
    policies, problems = found.policies, [*config.problems, *found.problems]
    composition = diagnose(config).composition if policies else None
    if policies and composition is None and not any(problem.severity == "error" for problem in problems):
        note("this configuration cannot run, so that no backend is known: `narrowgate check` tells why")
    backends = {} if composition is None else {item.policy.policy_id: item.backend for item in composition.policies}
    held: Lock = {} if any(problem.code == "policy-lock" for problem in problems) else read_lock(found.lock)
    named = {item.policy_id for item in policies}
    known = [
        Known(policy=item, used=item.policy_id in named, backend=backends.get(item.policy_id), locked=_locked(held, item))
        for item in (*policies, *(item for name, item in BUILT_IN.items() if name not in named))
    ]
    return found, known, problems


def _locked(held: Lock, policy: DecisionPolicy) -> str:
    found = held.get((policy.policy_id, policy.version))
    if found is None:
        return "no"
    return "yes" if found.fingerprint == fingerprint(policy) else "changed"


def _name_json(policy: DecisionPolicy) -> dict[str, Any]:
    return {
        "policy_id": policy.policy_id,
        "version": policy.version,
        "fingerprint": fingerprint(policy),
        "origin": policy.origin,
    }


def _row_json(item: Known) -> dict[str, Any]:
    policy = item.policy
    return {
        **_name_json(policy),
        "in_use": item.used,
        "mode": policy.mode.value,
        "consumer": policy.consumer,
        "backend": item.backend,
        "local_rules": list(policy.local_rules),
        "privacy_boundary": policy.privacy_boundary.value,
        "locked": item.locked,
    }


def _shown_json(found: PolicySet, item: Known) -> dict[str, Any]:
    record = standing(read_records(found.records, item.policy.policy_id), item.policy)
    promotion = None
    if record is not None:
        promotion = {
            "mode": record.mode.value,
            "previous": record.previous.value,
            "approver": record.approver,
            "decided_at": record.decided_at.isoformat(),
            "evidence": dict(record.evidence),
        }
    return {
        **plain(item.policy),
        "fingerprint": fingerprint(item.policy),
        "in_use": item.used,
        "backend": item.backend,
        "locked": item.locked,
        "promotion": promotion,
    }


def _as_toml(policy: DecisionPolicy) -> str:
    """Return a policy as a file that reads as the same policy; fields that are not set are left out."""
    fields = {name: value for name, value in plain(policy).items() if name not in ("origin", "rule_settings")}
    fields["thresholds"] = {name: value for name, value in fields["thresholds"].items() if value is not None}
    said = {name: value for name, value in fields.items() if value not in (None, {})}
    tables = {name: value for name, value in said.items() if isinstance(value, dict)}
    return tomli_w.dumps({**{name: value for name, value in said.items() if name not in tables}, **tables})


def _text(value: Any) -> str:
    if isinstance(value, list | Mapping):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
