"""The registry of commands."""

import typer

from app.cli.audit import audit
from app.cli.cells import cells
from app.cli.log import log
from app.cli.migrate import migrate
from app.cli.projections import projections
from app.cli.replay import replay
from app.cli.serve import serve
from app.cli.token import token

cli = typer.Typer(
    name="tenure",
    help="An event-sourced control plane: who holds what, where, and since when.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (serve, migrate, replay, cells):
    cli.command()(command)
cli.add_typer(projections, name="projections")
cli.add_typer(audit, name="audit")
cli.add_typer(log, name="log")
cli.add_typer(token, name="token")


def main() -> None:
    """The program."""
    cli()
