"""`elute demos collect`: record demonstrations in a task."""

from pathlib import Path

from elute.cli.arguments import cores
from elute.cli.show import say, say_losses
from elute.collect.operator import OPERATOR, operate, parse_skill
from elute.collect.record import record
from elute.collect.shipped import find_policy
from elute.demos.audit.finding import counted
from elute.demos.files import guess_format, save
from elute.demos.output import check_output
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.types import Demonstrations


def run(
    task: str,
    policy: str,
    noise: str,
    rows: int,
    seed: int,
    workers: int | None,
    output: Path,
    to: str,
    strict: bool,
) -> None:
    """Record and write."""
    check_output(output)
    if not to and output.suffix in (".h5", ".hdf5"):
        to = "d4rl"  # of the formats with this ending the one that holds next observations
    to = to or guess_format(output, "")
    where = find_task(task)
    if policy.partition(":")[0] == OPERATOR:
        skill = parse_skill(policy)
        _check_alone(noise, workers)
        _written(operate(skill, where, rows=rows, seed=seed), output, to, strict, policy)
        return
    actor = find_policy(policy, task)
    checkpoint = policy.replace("@", ":").partition(":")[0] == "checkpoint"
    kind = ActionNoise.parse(noise or ("sample" if checkpoint else "none"))
    demos = record(actor, where, noise=kind, rows=rows, seed=seed, workers=cores(workers))
    _written(demos, output, to, strict, f"noise {kind}")


def _check_alone(noise: str, workers: int | None) -> None:
    """Refuse what the scripted operator has no use for.

    Raises:
        EluteError: noise, or more than one process.
    """
    if noise not in ("", "none"):
        raise EluteError(
            f"--noise {noise}: the operator's flaws come from its skill",
            hint="elute demos corrupt puts noise on what was recorded",
        )
    if workers is not None and workers > 1:
        raise EluteError(f"--workers {workers}: the operator plays in one process")


def _written(demos: Demonstrations, output: Path, to: str, strict: bool, how: str) -> None:
    say_losses(save(demos, output, format=to, strict=strict))
    n_episodes = len(demos.episodes)
    assert demos.rewards is not None
    say(
        f"wrote {output}: {counted(len(demos), 'row')} in {counted(n_episodes, 'episode')}, "
        f"mean return {demos.rewards.sum() / n_episodes:.1f}, {how}"
    )
