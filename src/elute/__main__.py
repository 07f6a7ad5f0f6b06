"""`python -m elute`."""

from elute.cli.main import main

main()
