"""The claims of the theorems and of the method's equations; `report/claims.py` adds the tables'."""

from elute.theory.claims import method, theorem1, theorem2, theorem4, theorem5
from elute.theory.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    *method.CLAIMS,
    *theorem1.CLAIMS,
    *theorem2.CLAIMS,
    *theorem4.CLAIMS,
    *theorem5.CLAIMS,
)
