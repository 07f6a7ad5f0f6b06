"""`elute theory` as a user types it."""

import json
import resource
import subprocess
import sys

import numpy as np
import pytest

from commands import elute
from elute.cli.theory import NAMES, TheoryOptions, facts, run
from elute.cli.theory_data import study_data
from elute.demos.corrupt import corrupt
from elute.demos.files import load, save
from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Training
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.purify.artefact import save_transform
from elute.purify.diffusion import DiffusionPurifier
from elute.report.claims import EVERY_CLAIM as CLAIMS
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

KEYS = ["claim", "where", "printed", "computed", "verdict"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theory")
    driven = pointmass(20, noise=0.02)
    good, rest = driven.select(range(6)), driven.select(range(6, 20))
    noisy = corrupt(rest, "gaussian", 1.0)
    save(good, folder / "good.npz")
    save(noisy, folder / "noisy.npz")
    save(rest, folder / "unknown.npz")
    purifier = DiffusionPurifier(reverse_step=60, training=Training(updates=150, check_every=50))
    save_transform(purifier.fit(DemoSet(good, noisy), Seeds(0)), folder / "some.purifier")
    return folder


def data(files, noisy="noisy.npz"):
    return (
        "theory", "--optimal", files / "good.npz", "--supplementary", files / noisy,
        "--model", files / "some.purifier",
    )  # fmt: skip


def options(files, **changes):
    given = {
        "optimal": str(files / "good.npz"), "supplementary": str(files / "noisy.npz"),
        "model": files / "some.purifier", "optimal_rows": None, "rows": None, "target": "",
        "seed": 0, "figure": None, "as_json": True,
    }  # fmt: skip
    return TheoryOptions(**(given | changes))


def test_the_ledger_as_json():
    done = elute("theory", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report) == ["claims"]
    assert len(report["claims"]) == len(CLAIMS) >= 18
    for claim in report["claims"]:
        assert list(claim) == KEYS
    assert {claim["claim"] for claim in report["claims"]} == {c.claim for c in CLAIMS}


def test_the_ledger_is_quick_and_needs_no_torch():
    code = (
        "import sys; from elute.cli.main import app;"
        "app(['theory', '--json'], standalone_mode=False);"
        "print([m for m in ('torch', 'matplotlib', 'gymnasium') if m in sys.modules],"
        " file=sys.stderr)"
    )
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime < 5
    assert json.loads(done.stdout)["claims"]


def test_the_ledger_for_people():
    done = elute("theory")
    assert done.returncode == 0
    assert "fails: |E| < .0113 for every d  (proof of Theorem 5)" in done.stdout
    assert "largest |E|: 0.04013" in done.stdout
    assert f"{len(CLAIMS)} claims: " in done.stdout


def test_figures_of_the_theorems(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need elute[report]")
    done = elute("theory", "--json", "--figure", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    drawn = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert drawn == [
        "theory-bounds.png", "theory-elasticity.png", "theory-inflection.png", "theory-lambda.png",
    ]  # fmt: skip
    assert "wrote" in done.stderr
    json.loads(done.stdout)


def test_data_with_a_model_and_clean_actions(files, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need elute[report]")
    done = elute(*data(files), "--json", "--figure", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert len(report["claims"]) == len(CLAIMS) + 5
    assert all(list(claim) == KEYS for claim in report["claims"])
    found = report["data"]
    assert found["dimension"] == 2
    assert found["target"] == "inpaint"
    assert found["delta"]["known"]
    assert list(found["delta"]["columns"].values()) == pytest.approx([1.0, 1.0], rel=0.1)
    noisy = load(files / "noisy.npz")
    both = np.concatenate([load(files / "good.npz").actions, noisy.actions])
    apart = (noisy.actions - noisy.extras["clean_actions"]) / both.std(axis=0)
    norm = np.sqrt((apart**2).sum(axis=1).mean())
    assert found["delta"]["norm"] == pytest.approx(norm, rel=0.05)
    assert found["reverse_step"].keys() == NAMES.keys() - {"auto"}
    assert found["reverse_step"]["model"] == 60
    assert [row["step"] for row in found["bounds"]] == [1, 3, 5, 10, 30, 60]
    assert [row["step"] for row in found["distance"]] == [0, 1, 3, 5, 10, 30, 60]
    assert found["distance"][-1]["purified"] < found["distance"][0]["purified"]
    left = [row["delta"] for row in found["contraction"]]
    assert left == sorted(left, reverse=True)
    assert len(list((tmp_path / "figures").glob("theory-*.png"))) == 7


def test_data_without_clean_actions_is_estimated_and_said(files):
    done = elute(*data(files, "unknown.npz"))
    assert done.returncode == 0, done.stderr
    assert "estimated: how far D_s strays" in done.stdout
    assert "which reverse step?" in done.stdout
    assert "the model's own" in done.stdout
    assert "nearest to the clean actions" not in done.stdout
    assert "your data: KL falls all the way" in done.stdout


def test_the_same_seed_gives_the_same_numbers(files):
    one, two, other = (facts(study_data(options(files, rows=150, seed=seed))) for seed in (0, 0, 1))
    assert one == two
    assert one["kl"] != other["kl"]
    assert one["rows"] == 150


@pytest.mark.slow
def test_data_alone_trains_a_purifier_and_asks_auto(files):
    done = elute(*data(files)[:-2], "--target", "joint", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["data"]
    assert found["dimension"] == load(files / "good.npz").pairs.shape[1]
    assert found["reverse_step"].keys() == NAMES.keys() - {"model"}
    assert [row["step"] for row in found["bounds"]][-1] == 1000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--optimal", "a.npz"), "--supplementary is missing"),
        (("--supplementary", "a.npz"), "--optimal is missing"),
        (("--model", "m", "--rows", "5"), "--model and --rows: only with --optimal"),
        (("--target", "joint"), "--target: only with --optimal"),
        (("--optimal", "no.npz", "--supplementary", "no.npz"), "no.npz"),
    ],
)
def test_what_cannot_be_is_refused(arguments, said, tmp_path):
    done = elute("theory", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_bad_data_is_refused(files, tmp_path):
    narrow = tmp_path / "narrow.npz"
    rng = np.random.default_rng(0)
    small = Demonstrations(
        observations=rng.random((40, 3)), actions=rng.random((40, 2)), episodes=Episodes.of([40])
    )
    save(small, narrow)
    refused = [
        ({"supplementary": str(narrow)}, "columns"),
        ({"optimal": str(narrow), "supplementary": str(narrow)}, "fitted on"),
        ({"model": files / "good.npz"}, "no purifier"),
        ({"model": tmp_path / "no"}, "no such file"),
        ({"target": "all"}, "no target"),
        ({"optimal_rows": 2}, "fewer than four rows"),
    ]
    for changes, said in refused:
        with pytest.raises(EluteError, match=said):
            run(options(files, **changes))
    (tmp_path / "file").touch()
    with pytest.raises(EluteError, match="is a file"):
        run(options(files, figure=tmp_path / "file"))
