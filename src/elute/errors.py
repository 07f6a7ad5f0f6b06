"""The one exception a user is meant to read."""


class EluteError(Exception):
    """Something the user can act on: what was given, what was expected, one hint.

    The command line prints it without a traceback and exits with code 2.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message
