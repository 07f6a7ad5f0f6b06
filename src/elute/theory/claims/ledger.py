"""Every claim of the paper that can be put to a number, and what the numbers say.

for checked in ledger(): print(checked.claim, checked.verdict)
"""

from elute.theory.claims import method, tables, theorem1, theorem2, theorem4, theorem5
from elute.theory.claims.claim import Checked, Claim

CLAIMS: tuple[Claim, ...] = (
    *method.CLAIMS,
    *theorem1.CLAIMS,
    *theorem2.CLAIMS,
    *theorem4.CLAIMS,
    *theorem5.CLAIMS,
    *tables.CLAIMS,
)


def ledger() -> list[Checked]:
    """All of them, measured and judged."""
    return [claim.check() for claim in CLAIMS]
