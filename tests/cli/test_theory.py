"""`elute theory` as a user types it."""

import json
import resource
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from commands import elute
from elute.cli.theory import NAMES, TheoryOptions, _short, facts, run
from elute.cli.theory_data import _at_most_all, study_data
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
    assert len(report["claims"]) == len(CLAIMS) + 6
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
    mean = np.linalg.norm(apart, axis=1).mean()
    assert found["delta"]["bounded"] == pytest.approx(mean, rel=0.05)
    measured = {row["step"]: row["one_draw"] for row in found["distance"]}
    for row in found["bounds"]:
        assert measured[row["step"]] >= row["lower_per_step"]
    assert found["lambda_largest"] >= max(row["lower_printed"] for row in found["bounds"])
    assert found["alike_after"] < (found["reverse_step"]["alike"] or 1001)
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
    assert "upper estimate: how far D_s strays" in done.stdout
    assert "which reverse step?" in done.stdout
    assert "the model's own" in done.stdout
    assert "nearest to the clean actions" not in done.stdout
    assert "your data: KL falls all the way" in done.stdout
    assert "printed   zeta'' C~" not in done.stdout  # the ledger is counted, not listed
    assert f"{len(CLAIMS)} claims of the paper: " in done.stdout
    assert done.stdout.index("claims of the paper") < done.stdout.index("which reverse step?")
    assert "a proxy: D_s diffused forward" in done.stdout


def test_an_estimated_delta_is_no_less_than_the_true_one_and_no_more_than_all(files, tmp_path):
    noisy = load(files / "noisy.npz")
    save(replace(noisy, extras={}), tmp_path / "bare.npz")
    found = facts(study_data(options(files, supplementary=str(tmp_path / "bare.npz"))))["delta"]
    assert not found["known"]
    estimated = np.array(list(found["columns"].values()))
    assert (estimated > 0.9).all()  # of noise 1
    apart = noisy.actions - load(files / "good.npz").actions.mean(axis=0)
    assert (estimated <= np.sqrt((apart**2).mean(axis=0)) * (1 + 1e-6)).all()


def test_an_estimate_beyond_the_deviation_of_the_actions_is_cut(files):
    good, noisy = load(files / "good.npz"), load(files / "noisy.npz")
    deviation = noisy.actions.std(axis=0)
    bold = _at_most_all(np.array([9.0, 0.5]), DemoSet(good, noisy))
    assert bold[0] == pytest.approx(deviation[0], rel=0.05)
    assert bold[1] == 0.5
    shifted = replace(good, actions=good.actions + 3.0)  # delta is 3, all of it bias
    assert (_at_most_all(np.array([3.0, 3.0]), DemoSet(good, shifted)) == 3.0).all()


def test_only_what_the_target_changes_is_counted(files):
    action, joint = (
        facts(study_data(options(files, target=target))) for target in ("action", "joint")
    )
    assert action["dimension"] == load(files / "good.npz").actions.shape[1]
    assert joint["dimension"] == load(files / "good.npz").pairs.shape[1]
    assert action["delta"] == joint["delta"]
    for one, other in zip(action["bounds"], joint["bounds"], strict=True):
        assert one["upper_per_step"] < other["upper_per_step"]
    for one, other in zip(action["distance"][1:], joint["distance"][1:], strict=True):
        assert one["one_draw"] < other["one_draw"]


@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_clean_actions_that_are_no_numbers_are_refused(files, tmp_path, extra):
    noisy = load(files / "noisy.npz")
    clean = noisy.extras["clean_actions"].copy()
    clean[3, 0] = np.nan
    save(replace(noisy, extras={"clean_actions": clean}), tmp_path / "nan.npz")
    given = (
        "theory", "--optimal", files / "good.npz", "--supplementary", tmp_path / "nan.npz",
        "--model", files / "some.purifier", *extra,
    )  # fmt: skip
    done = elute(*given)
    assert done.returncode == 2
    assert "clean_actions holds values that are not finite" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [(float("nan"), "nan"), (float("inf"), "inf"), (None, "-"), (1e-5, "0"), (0.1234, "0.123"),
     (123.4, "123"), (3e6, "3e6")],
)  # fmt: skip
def test_numbers_in_the_table(value, shown):
    assert _short(value) == shown


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
