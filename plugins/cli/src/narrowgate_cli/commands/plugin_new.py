"""`plugin new`: a distribution to start from."""

from __future__ import annotations

from pathlib import Path

import click

from narrowgate.seams import Seam
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option
from narrowgate_cli.output import write_json
from narrowgate_cli.scaffold import ScaffoldError, write_plugin


@click.command(cls=Command)
@common
@click.argument("name", metavar="NAME")
@click.option("--seam", type=click.Choice([seam.value for seam in Seam]), required=True, help="What its component is.")
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where its folder is made (default: here).",
)
@click.option("--author", metavar="NAME", help="Your name, for the metadata.")
@click.option("--license", "licence", metavar="SPDX", default="Apache-2.0", show_default=True, help="Its licence.")
@json_option
def new(
    place: Place,  # noqa: ARG001 - every command takes the same options; no configuration is read here
    name: str,
    seam: str,
    directory: Path,
    author: str | None,
    licence: str,
    as_json: bool,
) -> int:
    """Write a new plugin: a distribution that installs and passes its contract as it is.

    NAME is the distribution's, e.g. narrowgate-acme, which has the plugin id acme. A folder of that name is made.
    """
    try:
        folder, files = write_plugin(name, Seam(seam), directory, author=author, licence=licence)
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{directory} cannot be written ({error.strerror}): choose another --directory") from None
    if as_json:
        write_json({"folder": str(folder), "files": list(files)})
        return exits.OK
    click.echo(f"{folder}")
    for file in files:
        click.echo(f"  {file}")
    click.echo(f'\nNext: cd {folder}, pip install -e ".[test]", pytest')
    return exits.OK
