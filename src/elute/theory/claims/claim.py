"""What a claim of the paper is: numbers that code measures, and rules that make a verdict of them.

holds             the numbers bear it out as printed
holds corrected   not as printed, but what was meant is true in a corrected form
fails             neither
vacuous           it says nothing: true of anything, or about nothing
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "holds corrected", "fails", "vacuous"]
Numbers = Mapping[str, float]
Rule = Callable[[Numbers], bool]


def never(numbers: Numbers) -> bool:
    """The rule of what cannot be."""
    del numbers
    return False


@dataclass(frozen=True)
class Checked:
    """A claim beside its numbers."""

    claim: str
    where: str
    printed: str
    computed: dict[str, float]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim; its verdict follows from the numbers alone."""

    claim: str
    where: str
    printed: str
    measure: Callable[[], Numbers]
    holds: Rule
    corrected: Rule = never
    vacuous: Rule = never

    def verdict(self, numbers: Numbers) -> Verdict:
        """What these numbers say about it."""
        if self.vacuous(numbers):
            return "vacuous"
        if self.holds(numbers):
            return "holds"
        return "holds corrected" if self.corrected(numbers) else "fails"

    def check(self) -> Checked:
        """Measure, and judge."""
        numbers = self.measure()
        rounded = {name: float(f"{value:.6g}") for name, value in numbers.items()}
        return Checked(self.claim, self.where, self.printed, rounded, self.verdict(numbers))


def near(one: float, other: float, tolerance: float = 1e-4) -> bool:
    """The same number, as far as differences and integrals can tell."""
    return abs(one - other) <= tolerance * max(1.0, abs(other))
