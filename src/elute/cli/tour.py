"""`elute tour`: what works today, shown by the commands a user would type."""

import shutil
import subprocess
import sys
from pathlib import Path

from elute.cli.show import out
from elute.demos.audit.repair import realign
from elute.demos.corrupt import CLEAN
from elute.demos.files import load, save
from elute.demos.pointmass import pointmass
from elute.errors import EluteError
from elute.types import Demonstrations


def run(folder: str) -> None:
    """Make small demonstrations, break them, and let the commands find and mend it."""
    home = Path(folder)
    _clear(home)
    clean, broken = home / "clean.hdf5", home / "broken.hdf5"
    demos = pointmass(30, seed=0)
    save(demos, clean, format="robomimic")
    # Spoil it the way the paper's own expert file is: states one row too late.
    save(realign(load(clean), -1), broken, format="robomimic")

    _say("Thirty demonstrations of a point mass driven to a goal, in a robomimic file.")
    _elute("demos", "info", str(clean))
    _say("The same recording, but each state was stored one step late. Would you have noticed?")
    _elute("demos", "audit", str(broken), "--fix", str(home / "fixed.hdf5"))
    _say("The repaired copy:")
    _elute("demos", "audit", str(home / "fixed.hdf5"))
    _say("Through five formats and back:")
    chain = ["fixed.hdf5", "a.npz", "b-v0", "c.h5", "d.hdf5", "again.hdf5"]
    formats = ["npz", "minari", "vild", "d4rl", "robomimic"]
    for source, target, name in zip(chain, chain[1:], formats, strict=False):
        _elute("demos", "convert", str(home / source), str(home / target), "--to", name)
    first, last = load(home / chain[0]), load(home / chain[-1])
    same = bool((first.pairs == last.pairs).all())
    _say(f"Every number the same after the journey: {'yes' if same else 'NO'}.")
    _say("Noise on the recorded actions, for experiments with a known truth:")
    _elute("demos", "corrupt", str(home / "fixed.hdf5"), str(home / "noisy.hdf5"), "--level", "0.6")
    _say(
        "Ten clean demonstrations show what is normal; the others are purified by it (20 seconds):"
    )
    good, purified = f"{home / 'fixed.hdf5'}#episodes=0-9", home / "purified.hdf5"
    shaky = f"{home / 'noisy.hdf5'}#episodes=10-27"
    _elute("purify", shaky, "--optimal", good, "-o", str(purified), "--reverse-step", "100")
    before, after = _action_error(load(shaky)), _action_error(load(purified))
    _say(f"Mean squared error of the actions, whose truth is known here: {before:.3f} before, "
         f"{after:.3f} after.")  # fmt: skip
    _say(f"The files are in {home}. Next: elute demos audit YOUR_FILE")
    if not same:
        raise EluteError("the conversion lost something", hint="please report this")


def _action_error(demos: Demonstrations) -> float:
    return float(((demos.actions - demos.extras[CLEAN]) ** 2).mean())


def _clear(home: Path) -> None:
    marker = home / ".elute-tour"
    if home.exists() and not marker.exists() and any(home.iterdir()):
        raise EluteError(f"{home}: not a folder of an earlier tour", hint="choose another --to")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    marker.touch()


def _say(text: str) -> None:
    out.print(f"\n{text}", style="bold", markup=False)


def _elute(*arguments: str) -> None:
    out.print(f"$ elute {' '.join(arguments)}", style="cyan", markup=False)
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "-m", "elute", *arguments], check=False)
    if done.returncode not in (0, 1):
        raise EluteError(f"the command ended with code {done.returncode}")
