"""Files larger than memory, work that is killed, and engines that give the same file."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from builders import d4rl_file, plain
from commands import elute, started
from elute.cli import show
from elute.demos.files import load, save
from elute.diffusion.ddpm import Training
from elute.purify.artefact import save_transform
from elute.purify.diffusion import DiffusionPurifier
from elute.rng import Seeds
from elute.types import CHUNK_ROWS, DemoSet

EPISODES = 5
SHARDS = 5


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Five shards, and a model that draws noise."""
    folder = tmp_path_factory.mktemp("scale")
    good, noisy = plain((300,), seed=1), plain((CHUNK_ROWS - 1000,) * EPISODES)
    save(good, folder / "good.npz")
    save(noisy, folder / "noisy.npz")
    quick = DiffusionPurifier(
        reverse_step=20, descents=1, draws=1, target="joint", training=Training(updates=2)
    )
    save_transform(quick.fit(DemoSet(good, noisy.first(500)), Seeds(0)), folder / "model")
    return folder


@pytest.fixture(scope="module")
def whole(files):
    """Purified, undisturbed."""
    done = elute(*command(files, "whole.npz"))
    assert done.returncode == 0, done.stderr


def command(folder, out, *more):
    given = ["purify", folder / "noisy.npz", "--optimal", folder / "good.npz"]
    return [*given, "--model", folder / "model", "--jobs", "1", "-o", folder / out, *more]


def assert_whole(folder, out):
    """The bytes of an undisturbed run, and nothing left beside them."""
    assert (folder / out).read_bytes() == (folder / "whole.npz").read_bytes()
    assert not shards_of(folder, out).exists()


def shards_of(folder, out):
    return folder / f".{out}.shards"


def finished(folder, out):
    shards = shards_of(folder, out)
    return sorted(path.name for path in shards.glob("*.npz")) if shards.exists() else []


def wait_for_a_shard(process, folder, out):
    while not finished(folder, out):
        assert process.poll() is None
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_killed_it_goes_on_with_the_shards_that_are_done(files):
    out = "killed.npz"
    process = started(*command(files, out))
    wait_for_a_shard(process, files, out)
    process.kill()  # kill -9
    process.communicate()
    kept = finished(files, out)
    assert 1 <= len(kept) < SHARDS
    assert not (files / out).exists()
    done = elute(*command(files, out))
    assert done.returncode == 0, done.stderr
    assert f"going on with {len(kept)} of {SHARDS} shards done" in done.stderr
    assert_whole(files, out)


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_interrupted_it_leaves_only_shards_and_other_work_does_not_take_them(files):
    out = "interrupted.npz"
    process = started(*command(files, out, "--seed", "1"))
    wait_for_a_shard(process, files, out)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not (files / out).exists()
    assert finished(files, out)
    done = elute(*command(files, out))  # of another seed
    assert done.returncode == 0, done.stderr
    assert "going on" not in done.stderr
    assert_whole(files, out)


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_noise_is_of_the_row_not_of_the_shard(files):
    """The file as purified in one call of the library, all rows at once."""
    from elute.purify.artefact import load_transform  # noqa: PLC0415

    whole = load_transform(files / "model")(load(files / "noisy.npz"), seed=0)
    np.testing.assert_array_equal(load(files / "whole.npz").pairs, whole.pairs)


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_processes_give_the_same_file(files):
    done = elute(*command(files, "two.npz", "--jobs", "2"))
    assert done.returncode == 0, done.stderr
    assert_whole(files, "two.npz")


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_a_ray_cluster_gives_the_same_file_and_a_killed_worker_costs_one_shard(files):
    pytest.importorskip("ray")
    out = "ray.npz"
    process = started(*command(files, out, "--engine", "ray", "--jobs", "2"))
    wait_for_a_shard(process, files, out)
    killed = next(ray_workers(process.pid))
    os.kill(killed, signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert_whole(files, out)


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_more_jobs_than_the_cluster_has_processors_do_not_wait_for_them(files):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        there = ray.get_runtime_context().gcs_address
        more = ("--engine", "ray", "--address", there, "--jobs", "3")
        done = elute(*command(files, "many.npz", *more), timeout=200)
    finally:
        ray.shutdown()
    assert done.returncode == 0, done.stderr
    assert_whole(files, "many.npz")


def ray_workers(master):
    """Actors below a process, by what Ray calls them."""
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}
    for pid, _, *name in rows:
        above = int(pid)
        while above in parents and above != master:
            above = parents[above]
        if above == master and "ray::Worker" in "".join(name):
            yield int(pid)


def test_engines_that_do_not_fit_are_refused(files, run_here):
    for more, said in (
        (("--engine", "slurm"), "local, or ray"),
        (("--address", "somewhere:1"), "local, or ray"),
    ):
        code, _, err = run_here(*command(files, "never.npz", *more))
        assert code == 2
        assert said in err
    assert not (files / "never.npz").exists()


def test_what_a_format_cannot_hold_is_refused_before_the_work(files, run_here, monkeypatch):
    monkeypatch.setattr("elute.cli.purify.shard_folder", lambda *_: pytest.fail("it was begun"))
    code, _, err = run_here(*command(files, "never.h5", "--to", "vild", "--strict"))
    assert code == 2
    assert f"{files / 'never.h5'}: vild cannot hold everything: rewards are unknown" in err
    assert not [path for path in files.iterdir() if "never" in path.name]


def test_a_small_file_needs_no_shards(files, run_here, monkeypatch):
    def no_folder(*_):
        pytest.fail("shards for a small file")

    monkeypatch.setattr("elute.cli.purify.shard_folder", no_folder)
    code, _, err = run_here(*command(files, "small.npz", "--rows", "5000"))
    assert code == 0, err
    assert len(load(files / "small.npz")) == 5000


def test_a_converted_robomimic_file_can_be_purified_in_its_format(tmp_path, run_here):
    given, flat, out = (tmp_path / name for name in ("a.h5", "b.hdf5", "c.hdf5"))
    d4rl_file(given, lengths=(40, 30))
    assert run_here("demos", "convert", given, flat, "--to", "robomimic")[0] == 0
    code, _, err = run_here("purify", flat, "--optimal", given, "--method", "mean", "-o", out)
    assert code == 0, err
    assert not np.array_equal(load(out).actions, load(flat).actions)


PEAK = "import resource, sys; from elute.cli.main import main\ntry: main()\nfinally: "
PEAK += "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"


def peak(*arguments):
    """The most memory, in KiB, that a command had."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return int(done.stderr.split()[-1])


@pytest.fixture(scope="module")
def sizes(tmp_path_factory):
    """A file, and one of three times as many rows."""
    folder = tmp_path_factory.mktemp("sizes")
    lengths = (1000,) * 200
    save(plain(lengths, observations=19, actions=6), folder / "1.npz")
    save(plain(lengths * 3, observations=19, actions=6), folder / "3.npz")
    save(plain((500,), observations=19, actions=6, seed=1), folder / "good.npz")
    for n in (1, 3):
        save_as_vild(folder, n)
    return folder


def save_as_vild(folder, n):
    save(load(folder / f"{n}.npz"), folder / f"{n}.h5", format="vild")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("suffix", ["npz", "h5"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("demos", "convert", "{file}", "out{n}.npz"),
        ("demos", "convert", "{file}", "out{n}.h5", "--to", "vild"),
        ("demos", "audit", "{file}", "--clip", "--bounds=-1,1", "--fix", "fixed{n}.{suffix}"),
        ("purify", "{file}", "--optimal", "good.npz", "--method", "wiener", "--jobs", "1",
         "-o", "pure{n}.{suffix}"),
        ("purify", "{file}", "--optimal", "good.npz", "--method", "mean", "--jobs", "1",
         "--rows", "{rows}", "-o", "some{n}.{suffix}"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]) + arguments[-1].split(".")[0],
)  # fmt: skip
def test_thrice_the_rows_take_no_more_memory(sizes, monkeypatch, suffix, arguments):
    monkeypatch.chdir(sizes)
    peaks = []
    for n in (1, 3):
        facts = {"file": f"{n}.{suffix}", "n": n, "suffix": suffix, "rows": 190_000 * n}
        peaks.append(peak(*(word.format(**facts) for word in arguments)))
    rows = 400_000 * 25 * 8 / 1024  # of the file that is added, in KiB; a peak varies by 10 000
    assert peaks[1] - peaks[0] < (0.6 if "audit" in arguments else 0.3) * rows


def test_the_pace_counts_what_was_done_now():
    assert show.pace(2000, 6000, 2.0, "rows") == "1,000 rows/s, 0:00:06 to go"
    assert show.pace(10, 36_610, 1.0, "") == "1:01:01 to go"
    assert show.pace(0, 10, 1.0, "rows") == ""


def test_without_a_terminal_a_line_is_said_now_and_then(monkeypatch, capfd):
    now = [0.0]
    monkeypatch.setattr(show.time, "monotonic", lambda: now[0])
    with show.progress("purifying", "rows", before=500) as update:
        for done in range(600, 1100, 100):
            now[0] += 25.0
            update(done, 1000)
    said = capfd.readouterr().err.splitlines()
    assert said == ["purifying: 800 of 1,000 rows, 4 rows/s, 0:00:50 to go"]
