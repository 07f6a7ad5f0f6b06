"""The results in plain words, written from the numbers and no surer than they are.

clearly better     the 95 % intervals of the two means do not overlap
perhaps better     they do: it may be chance
better in one run  a single seed, of whose chance nothing is known
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elute.demos.audit.finding import counted
from elute.report.groups import Group, Place
from elute.report.numbers import number, percent, with_error
from elute.report.statistics import (
    Estimate,
    bootstrap_interval,
    improvement_probabilities,
    probability_of_improvement,
    winners,
)

MOST_LISTED = 4
"""Comparisons that get a sentence of their own; more are counted."""
_ONE_SEED = " (one seed: it may be chance)"
_CAREFUL = " (the 95 % intervals overlap: it may be chance)"


@dataclass(frozen=True)
class Comparison:
    """A learner on purified demonstrations, and the same on the unpurified ones."""

    purified: Group
    plain: Group

    @property
    def verdict(self) -> str:
        """See the module."""
        return verdict(self.purified.ours, self.plain.ours)

    @property
    def gain(self) -> float:
        """How much more it earned."""
        return self.purified.ours.mean - self.plain.ours.mean


def verdict(ours: Estimate, theirs: Estimate) -> str:
    """How the one compares with the other."""
    if ours.mean == theirs.mean:
        return "the same"
    way = "better" if ours.mean > theirs.mean else "worse"
    if ours.interval is None or theirs.interval is None:
        return f"{way} in one run" if ours.seeds == theirs.seeds == 1 else f"perhaps {way}"
    return f"{'perhaps' if ours.interval.overlaps(theirs.interval) else 'clearly'} {way}"


def comparisons(groups: Sequence[Group]) -> list[Comparison]:
    """Every purified group beside its learner without a purifier, where both are there.

    Where the reverse step was chosen, the fixed ones of a sweep are left out.
    """
    plain = {(g.place, g.method): g for g in groups if not g.purified and not g.variant}
    plain |= {(g.place, "bc"): g for g in groups if g.method == "bc-all"}
    chosen = {(g.place, g.method) for g in groups if g.step == "auto"}
    return [
        Comparison(group, plain[group.place, _learner(group)])
        for group in groups
        if group.purified
        and (group.place, _learner(group)) in plain
        and not (group.step.isdecimal() and (group.place, group.method) in chosen)
    ]


def _learner(group: Group) -> str:
    return group.method.partition("-")[2].removesuffix("-best")


def summary(
    groups: Sequence[Group],
    audits: Sequence[Mapping[str, Any]],
    purifications: Sequence[tuple[str, Mapping[str, Any]]],
    unscored: int = 0,
) -> list[str]:
    """Sentences, the most important first."""
    sentences = [
        *_results(groups),
        *(_purified(name, facts) for name, facts in purifications[:MOST_LISTED]),
        *_audited(audits),
    ]
    if unscored:
        sentences.append(f"Left out, without a finite score: {counted(unscored, 'run')}.")
    return sentences


def _results(groups: Sequence[Group]) -> Iterable[str]:
    families: dict[tuple[str, str, str], list[Comparison]] = {}
    for found in comparisons(groups):
        key = (found.purified.place.regime, found.purified.name, found.plain.name)
        families.setdefault(key, []).append(found)
    # what was compared most often comes first
    for family in sorted(families.values(), key=len, reverse=True)[:MOST_LISTED]:
        yield from (_one(family[0]),) if len(family) == 1 else _many(family)
    if groups and not families:
        methods = counted(len({group.name for group in groups}), "method")
        sets = counted(len({group.place for group in groups}), "set")
        yield (
            f"{methods} on {sets} of demonstrations; no method is there both with and without "
            "purification, so that nothing can be said about it."
        )
    yield from _best(groups)


def _one(found: Comparison) -> str:
    purified, plain = found.purified, found.plain
    unsure = {"perhaps": _CAREFUL, "clearly": "", "the": ""}.get(
        found.verdict.split()[0], _ONE_SEED
    )
    if min(purified.ours.seeds, plain.ours.seeds) == 1 and unsure == _CAREFUL:
        unsure = _ONE_SEED
    word = found.verdict.removesuffix(" in one run")
    return (
        f"{_where(purified.place)}, purified demonstrations gave {_gave(purified)}, "
        f"unpurified ones {_gave(plain)}: {word}{unsure}.{_way_to_expert(found)}"
    )


def _gave(group: Group) -> str:
    return f"{with_error(group.ours)} ({group.name}, {counted(group.ours.seeds, 'seed')})"


def _where(place: Place) -> str:
    return f"On {place.task} with {place.demos} (regime {place.regime})"


def _way_to_expert(found: Comparison) -> str:
    shares = [group.normalised for group in (found.plain, found.purified)]
    if not all(shares):
        return ""
    before, after = (percent(sum(share) / len(share)) for share in shares)
    return (
        f" Where random actions are 0 and the expert is 100 %, that is {after} instead of {before}."
    )


def _many(family: Sequence[Comparison]) -> Iterable[str]:
    purified, plain = family[0].purified, family[0].plain
    verdicts = [found.verdict for found in family]
    sets = f"of {len(family)} sets of demonstrations (regime {purified.place.regime})"
    compared = f"than unpurified ones ({plain.name})"
    if all(word.endswith("in one run") for word in verdicts):
        higher = sum(found.gain > 0 for found in family)
        told = f"better {compared} on {higher} {sets}, with one seed each: any one may be chance"
    else:
        better, worse = (verdicts.count(f"clearly {way}") for way in ("better", "worse"))
        rest = len(family) - better - worse
        unsure = f"; on {rest} it may be chance" if rest else ""
        told = (
            f"clearly better {compared} on {better or 'none'} {sets}, "
            f"clearly worse on {worse or 'none'}{unsure}"
        )
    yield f"Purified demonstrations ({purified.name}) were {told}."
    yield _improvement(family)
    yield _extremes(family)


def _improvement(family: Sequence[Comparison]) -> str:
    ours, theirs = ([getattr(f, side).scores for f in family] for side in ("purified", "plain"))
    share = probability_of_improvement(ours, theirs)
    interval = bootstrap_interval(improvement_probabilities, ours, theirs)
    between = (
        "" if interval is None
        else f" (95 % interval {percent(interval.low)} to {percent(interval.high)})"
    )  # fmt: skip
    return (
        f"Taken at random, a run on purified demonstrations beats one on unpurified ones with "
        f"probability {percent(share)}{between}."
    )


def _extremes(family: Sequence[Comparison]) -> str:
    ranked = sorted(family, key=lambda found: found.gain)
    most, least = ranked[-1], ranked[0]
    gained = _from_to("Most was gained" if most.gain > 0 else "Least was lost", most)
    lost = _from_to("least" if least.gain > 0 else "most was lost", least)
    return f"{gained}; {lost}."


def _from_to(what: str, found: Comparison) -> str:
    before, after = (number(g.ours.mean) for g in (found.plain, found.purified))
    place = found.purified.place
    return f"{what} on {place.task} with {place.demos} (from {before} to {after})"


def _best(groups: Sequence[Group]) -> Iterable[str]:
    """How often each method is among the best, where there are several seeds to say so."""
    places: dict[Place, dict[str, Estimate]] = {}
    for group in groups:
        places.setdefault(group.place, {})[group.name] = group.ours
    full = [best for line in places.values() if len(line) > 2 and (best := winners(line))]
    wins = Counter(name for best in full for name in best)
    order = sorted(wins, key=lambda name: -wins[name])
    if len(full) > 1:
        counts = ", ".join(f"{name} on {wins[name]}" for name in order[:5])
        yield f"Best or not clearly worse than the best, of {len(full)} comparisons: {counts}."


def _purified(name: str, facts: Mapping[str, Any]) -> str:
    """What became of one file."""
    step, errors = facts.get("reverse_step"), facts.get("heldout_error") or {}
    if step == 0:
        return (
            f"{name} was left as it was: its actions should err more after purification, "
            "whichever reverse step is taken."
            if facts.get("reverse_step_why") != "given"
            else f"{name} was left as it was: reverse step 0 was asked for."
        )
    moved = [column for column, by in (facts.get("moved") or {}).items() if by > 0]
    columns = len(facts.get("moved") or {})
    sentence = f"Purification of {name} moved {len(moved)} of {columns} columns"
    distance = facts.get("distance") or {}
    if distance:
        before, after = distance["before"], distance["after"]
        nearer = "nearer to" if after < before else "farther from"
        how = f"{number(before)} before, {number(after)} after"
        sentence += f" and left rows {nearer} the optimal ones (mean distance {how})"
    if errors.get("before") is not None and errors.get("after") is not None:
        error = f"{number(errors['before'])} to {number(errors['after'])}"
        sentence += f"; at reverse step {step} the held-out action error goes from {error}"
    return f"{sentence}."


def by_file(audits: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Findings of each file; the good file of several audits is told about once."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for audit in audits:
        found.setdefault(str(audit["file"]), [])
        for finding in audit["findings"]:
            known = found.setdefault(str(finding.get("file") or audit["file"]), [])
            if finding not in known:
                known.append(finding)
    return found


def _audited(audits: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    files = by_file(audits)
    severities = [finding["severity"] for found in files.values() for finding in found]
    told = [
        counted(severities.count(kind), kind)
        for kind in ("error", "warning", "note")
        if kind in severities
    ]
    if files:
        found = ", ".join(told) or "nothing"
        yield f"The audit of {counted(len(files), 'file')} found {found}."
