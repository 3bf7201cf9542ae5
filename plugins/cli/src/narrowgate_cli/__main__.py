"""`python -m narrowgate_cli`: the command without its script."""

from narrowgate_cli.main import main

main()
