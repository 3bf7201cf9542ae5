"""The entry point `narrowgate` and the table of its commands.

Light on purpose: a command's module is imported when the command is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import click

from narrowgate_cli.exits import INTERRUPTED, OK

COMMANDS: Final = {
    "try": ("try_:try_", "Show what narrowgate does."),
    "import": ("import_:import_", "Read Markdown notes and JSONL files into a memory."),
    "search": ("search:search", "Ask a question and show the evidence for the answer, best first."),
    "show": ("entries:show", "Show one entry."),
    "history": ("entries:history", "List all changes of one entry, oldest first."),
    "forget": ("entries:forget", "Take entries out of search."),
    "restore": ("entries:restore", "Put forgotten entries back into search."),
    "export": ("export:export", "Write the entries of a memory as JSONL."),
    "memories": ("entries:memories", "List the memories of a database, with their revision and the number of entries."),
    "reindex": ("reindex:reindex", "Rebuild the indexes with today's analyser and embedder."),
    "eval": ("eval_:eval_", "Measure recall and decisions on labelled collections."),
    "check": ("check:check", "Say whether the configuration can run."),
    "plugins": ("plugins:plugins", "List the plugins found and what they offer."),
    "plugin new": ("plugin_new:new", "Write a new plugin: a distribution that installs and passes its contract as it is."),
    "policy list": ("policy:list_", "List the decision policies: those that take part, and those that are built in."),
    "policy show": ("policy:show", "Show everything that one policy says."),
    "policy lint": ("policy:lint", "Check policy files without running anything."),
    "policy lock": ("policy:lock", "Enter the policies that take part into the lock."),
    "policy rescore": (
        "policy_rescore:rescore",
        "Say what stored answers would have led to under other thresholds or another mapping.",
    ),
    "policy replay": (
        "policy_replay:replay",
        "Resolve the references of stored observations again and ask anew.",
    ),
    "policy evaluate": ("policy_evaluate:evaluate_", "Hold a policy against labelled cases."),
    "policy promote": ("policy_promote:promote", "Let a policy gain power, on evidence."),
    "policy demote": (
        "policy_promote:demote",
        "Take power back from a policy: at once, without evidence, with a record.",
    ),
    "held list": ("held:list_", "List writes that a gate holds back, oldest first, without their content."),
    "held show": ("held:show", "Show one held write, with its text and evidence while it can still be released."),
    "held release": ("held:release", "Write held entries, each as a revision of its own."),
    "held reject": ("held:reject", "Close held writes without writing them."),
    "held purge": ("held:purge", "Remove expired writes with their content, or records of what was decided, for good."),
    "observations tail": ("observations:tail", "Show the newest observations, the newest last."),
    "observations stats": (
        "observations:stats",
        "Count what gates did: attempts, verdicts, actions, fallbacks by reason, latency and cost of each policy.",
    ),
    "observations export": ("observations:export", "Write observations as JSON lines or Parquet, oldest first."),
}
"""Name -> (`module:attribute` under `narrowgate_cli.commands`, one line for the list of commands). The first of two words is
the name of a group."""

GROUPS: Final = {
    "plugin": "Write plugins.",
    "policy": "Decision policies: what they say, what they reach, and who let them gain power.",
    "held": "Writes that a gate holds back: nothing of them is lost, and a person decides.",
    "observations": "What gates did: one by one, in figures, and as a file.",
}
"""Name of a group -> one line for the list of commands."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for.

    Args:
        prefix: what the names of its commands in `COMMANDS` begin with: nothing, or the group's own name and a space.
    """

    def __init__(self, *args: Any, prefix: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of `COMMANDS`, each group once."""
        own = (name.removeprefix(self.prefix) for name in COMMANDS if name.startswith(self.prefix))
        return list(dict.fromkeys(name.partition(" ")[0] for name in own))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command, or make a group; `None` for a name that is neither in `COMMANDS` nor in `GROUPS`."""
        name = self.prefix + cmd_name
        if name in GROUPS:
            return LazyGroup(name=cmd_name, help=GROUPS[name], prefix=f"{name} ")
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name][0].split(":")
        command: click.Command = getattr(import_module(f"narrowgate_cli.commands.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the tables, so that `--help` imports none of them."""
        names = [(name, self.prefix + name) for name in self.list_commands(ctx)]
        rows = [(name, GROUPS[full] if full in GROUPS else COMMANDS[full][1]) for name, full in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Root(LazyGroup):
    """The command itself: it ends with the documented exit codes."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and exit. Unlike click's own, Ctrl-C ends with 130, and a command's return value is the exit code."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args=windows_expand_args, **extra)  # noqa: FBT003
            if not standalone_mode:
                return code
        except click.ClickException as error:
            if not standalone_mode:
                raise
            error.show()
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            if not standalone_mode:
                raise
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else OK)


def _show_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from narrowgate_cli.commands.plugins import version_lines

        for line in version_lines():
            click.echo(line)
        ctx.exit()


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the versions of narrowgate and of every plugin found, and exit.",
)
def cli() -> None:
    """Governed recall: recall wide, decide narrow.

    Start with `narrowgate try`. Then `narrowgate import PATH` and `narrowgate search QUESTION`.
    """


def main() -> None:
    """Run the command `narrowgate`."""
    if "PYTHONIOENCODING" not in os.environ:
        for stream in (sys.stdout, sys.stderr):
            # A memory holds any language, whatever the locale says; a terminal that cannot show it gets a stand-in.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8", errors="replace")
    cli(prog_name="narrowgate")
