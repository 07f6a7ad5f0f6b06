"""Algorithm 1: the same each time, also after a kill; and the networks of the presets."""

import resource
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Lesson, Training, train
from elute.diffusion.denoiser import (
    PaperDenoiser,
    ReferenceDenoiser,
    StepDenoiser,
    at_step,
    embed_step,
)
from elute.diffusion.schedule import Schedule
from elute.errors import EluteError
from elute.nets import seeded
from elute.purify.diffusion import DiffusionPurifier
from elute.rng import Seeds
from elute.types import DemoSet

DEMOS = DemoSet(pointmass(2), corrupt(pointmass(2, seed=1), "gaussian", 0.6))
PAIRS = torch.tensor(DEMOS.optimal.pairs, dtype=torch.float32)
LINEAR = Schedule.linear()
SHORT = Training(updates=60, batch_size=32, check_every=10)
NETWORKS = {
    "step": lambda: StepDenoiser(8, width=32, depth=2),
    "paper": lambda: PaperDenoiser(8, width=32),  # dropout: a second stream to restore
}


def fresh(make=NETWORKS["step"], seed=0):
    with seeded(Seeds(seed)("network")):
        return make()


def denoising_loss(network, rows):
    """At one step, with the same noise each time."""
    eps = torch.randn(rows.shape, generator=torch.Generator().manual_seed(0))
    noisy = float(LINEAR.signal[50]) * rows + float(LINEAR.noise[50]) * eps
    return float(((network(noisy, torch.tensor([50])) - eps) ** 2).mean())


def run(network, settings=SHORT, *, pairs=PAIRS, seed=0, max_step=100, **options):
    rng = Seeds(seed)("training")
    lesson = Lesson(network, pairs, LINEAR, settings, max_step, denoising_loss)
    return train(lesson, rng, **options)


def same(one, other):
    return all(torch.equal(one[k], other[k]) for k in one) and one.keys() == other.keys()


def interrupt_at(update):
    def progress(done, total):
        if done >= update:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_seed_gives_the_same_weights_and_another_others(name):
    first, second = (run(fresh(NETWORKS[name])) for _ in range(2))
    assert same(first.weights, second.weights)
    assert first.curve == second.curve
    assert not same(first.weights, run(fresh(NETWORKS[name]), seed=1).weights)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("held_out", [0.0, 0.2])
@pytest.mark.parametrize("update", [20, 50])
def test_a_killed_training_resumes_as_if_nothing_had_happened(tmp_path, name, held_out, update):
    settings = replace(SHORT, held_out=held_out)
    whole = run(fresh(NETWORKS[name]), settings)
    path = tmp_path / "training.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(fresh(NETWORKS[name]), settings, checkpoint=path, progress=interrupt_at(update))
    torch.rand(3)  # what the new process did before
    seen = []
    resumed = run(
        fresh(NETWORKS[name]),
        settings,
        checkpoint=path,
        progress=lambda done, total: seen.append(done),
    )
    assert seen[0] == update  # the check that was interrupted is repeated, nothing before it
    assert same(whole.weights, resumed.weights)
    assert (whole.curve, whole.held_out) == (resumed.curve, resumed.held_out)
    assert list(tmp_path.iterdir()) == [path]  # what comes next may fail: the caller deletes it
    again = run(fresh(NETWORKS[name]), settings, checkpoint=path, progress=interrupt_at(update))
    assert same(whole.weights, again.weights)  # finished: no update was made, so none interrupted


def test_a_checkpoint_does_not_change_the_result(tmp_path):
    with_one = run(fresh(), checkpoint=tmp_path / "c")
    assert same(with_one.weights, run(fresh()).weights)


@pytest.mark.parametrize(
    "other",
    [
        {"settings": replace(SHORT, updates=70)},
        {"max_step": 99},
        {"seed": 1},
        {"pairs": PAIRS + 1e-3},
        {"network": fresh(lambda: StepDenoiser(8, width=16, depth=2))},
        {"network": fresh(seed=1)},
    ],
    ids=["settings", "steps", "seed", "data", "width", "first weights"],
)
def test_the_checkpoint_of_another_training_is_refused(tmp_path, other):
    path = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        run(fresh(), checkpoint=path, progress=interrupt_at(20))
    with pytest.raises(EluteError, match="another training"):
        run(**({"network": fresh(), "checkpoint": path} | other))
    assert path.exists()


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "c"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(EluteError, match="no checkpoint"):
        run(fresh(), checkpoint=path)


def test_a_checkpoint_that_cannot_be_written_is_explained(tmp_path):
    path = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        run(fresh(), checkpoint=path, progress=interrupt_at(20))
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # as a full disk would
    try:
        with pytest.raises(EluteError, match=r"c: the checkpoint .* cannot be written"):
            run(fresh(), checkpoint=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"c": before}


def test_the_last_updates_count_also_where_they_fill_no_check():
    seen = []
    settings = replace(SHORT, updates=25, held_out=0.2)
    trained = run(fresh(), settings, progress=lambda *done: seen.append(done))
    assert seen == [(10, 25), (20, 25), (25, 25)]
    assert [update for update, _ in trained.held_out] == [10, 20, 25]
    whole = run(fresh(), replace(settings, check_every=25))
    losses = [loss for _, loss in trained.curve]
    mean = (10 * losses[0] + 10 * losses[1] + 5 * losses[2]) / 25
    assert mean == pytest.approx(whole.curve[0][1])


def test_the_loss_falls():
    trained = run(fresh(), Training(updates=400, check_every=50, patience=100))
    losses = [loss for _, loss in trained.curve]
    assert losses[-1] < 0.8 * losses[0]
    assert [update for update, _ in trained.curve] == list(range(50, 401, 50))


def test_it_stops_when_held_out_rows_no_longer_gain():
    settings = Training(updates=5000, check_every=10, patience=2, learning_rate=1e-2)
    trained = run(fresh(), settings, pairs=PAIRS[:12])
    assert trained.updates < 5000
    losses = [loss for _, loss in trained.held_out]
    assert len(losses) - 1 - int(np.argmin(losses)) == 2


def test_without_an_average_the_last_weights_are_kept():
    network = fresh()
    trained = run(network, replace(SHORT, average=0.0, held_out=0.0))
    assert same(trained.weights, network.state_dict())


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_network_comes_back(training):
    network = fresh(NETWORKS["paper"]).train(training)
    run(network)
    assert network.training is training


def test_a_network_in_evaluation_mode_is_trained_all_the_same():
    asleep = fresh(NETWORKS["paper"]).eval()
    assert same(run(asleep).weights, run(fresh(NETWORKS["paper"])).weights)


@pytest.mark.parametrize("name", NETWORKS)
def test_torchs_own_stream_is_left_alone(name, tmp_path):
    before = torch.random.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        run(fresh(NETWORKS[name]), checkpoint=tmp_path / "c", progress=interrupt_at(20))
    run(fresh(NETWORKS[name]), checkpoint=tmp_path / "c")
    assert torch.equal(before, torch.random.get_rng_state())


def test_only_steps_up_to_the_reverse_step_are_learnt_and_none_for_zero():
    class Listening(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.steps = nn.Linear(8, 8), set()

        def forward(self, x, step):
            self.steps |= set(step.tolist())
            return self.linear(x)

    network = Listening()
    run(network, replace(SHORT, updates=100, held_out=0.0), max_step=7)
    assert network.steps == set(range(1, 8))
    nothing = DiffusionPurifier(reverse_step=0).fit(DEMOS, Seeds(0))
    assert nothing.trained.updates == 0
    assert nothing.max_step == 0


def test_the_network_knows_no_step_above_the_one_it_was_trained_to():
    purifier = DiffusionPurifier(reverse_step=40, training=replace(SHORT, updates=2))
    transform = purifier.fit(DEMOS, Seeds(0))
    assert transform.at(20).at(40).purifier.reverse_step == 40
    with pytest.raises(EluteError, match="trained up to 40"):
        transform.at(20).at(41)
    with pytest.raises(EluteError, match="expected 0"):
        transform.at(-1)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_at_one_step_says_what_it_says_row_by_row(name):
    network, x = fresh(NETWORKS[name]).eval(), PAIRS[:16].clone()
    with torch.no_grad():
        for step in (1, 9, 700):
            each = network(x, torch.full((16,), step))
            torch.testing.assert_close(at_step(network, step)(x), each)
    assert torch.equal(x, PAIRS[:16])


def test_the_step_is_embedded_once_for_all_rows():
    network, x = fresh(), PAIRS[:16]
    each, once = network(x, torch.full((16,), 9)), network(x, torch.tensor([9]))
    torch.testing.assert_close(each, once)
    assert not torch.allclose(once, network(x, torch.tensor([90])), atol=1e-3)
    assert embed_step(torch.tensor([3, 4])).shape == (2, 64)


def test_the_paper_architecture():
    network = PaperDenoiser(23)
    linear = [m for m in network.layers if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in (*linear, network.out)] == [
        (23, 1024),
        (1024, 1024),
        (1024, 1024),
        (1024, 1024),
        (1024, 23),
    ]
    assert len({id(m) for m in network.norms}) == 4
    assert network.dropout.p == 0.2
    paper = DiffusionPurifier.paper(5)
    assert (paper.training.updates, paper.training.learning_rate) == (10_000, 1e-4)
    assert (paper.reverse_step, paper.target, paper.draws, paper.descents) == (5, "joint", 1, 0)
    assert not any((paper.only_used_steps, paper.standardise, paper.batch_statistics))


def test_the_reference_architecture_is_blind_and_shares_its_batchnorm():
    network = ReferenceDenoiser(8, width=16).eval()
    assert sum(isinstance(m, nn.BatchNorm1d) for m in network.modules()) == 1
    x = PAIRS[:4]
    assert torch.equal(network(x, torch.tensor([1])), network(x, torch.tensor([900])))
    assert DiffusionPurifier.reference(5).reverse_step == 6


def few(purifier):
    return replace(purifier, training=replace(purifier.training, updates=3))


@pytest.mark.parametrize("preset", ["paper", "reference", "default"])
def test_only_the_reference_makes_rows_depend_on_each_other(preset):
    made = {"default": DiffusionPurifier(reverse_step=5)}
    purifier = made.get(preset) or getattr(DiffusionPurifier, preset)(3)
    transform = few(purifier).fit(DEMOS, Seeds(0))
    mode = transform.network.training
    weights = {k: v.clone() for k, v in transform.network.state_dict().items()}
    alone, together = transform(DEMOS.supplementary[:20]), transform(DEMOS.supplementary)
    apart = not np.array_equal(alone.pairs, together.pairs[:20])
    assert apart is (preset == "reference")
    assert np.array_equal(together.pairs, transform(DEMOS.supplementary).pairs)
    assert transform.network.training is mode
    assert same(weights, transform.network.state_dict())


@pytest.mark.parametrize(
    "settings", [{"draws": 0}, {"descents": -1}, {"eta": 1.5}, {"reverse_step": 1001}]
)
def test_settings_that_are_none_are_refused(settings):
    with pytest.raises(EluteError, match="asked for"):
        DiffusionPurifier(**settings)


def test_an_optimal_set_of_one_row_is_refused():
    with pytest.raises(EluteError, match="one row"):
        DiffusionPurifier().fit(DemoSet(DEMOS.optimal[:1], DEMOS.supplementary), Seeds(0))


def test_data_without_variation_is_refused():
    still = replace(
        DEMOS.optimal,
        observations=np.ones_like(DEMOS.optimal.observations),
        actions=np.ones_like(DEMOS.optimal.actions),
    )
    with pytest.raises(EluteError, match="no column varies"):
        DiffusionPurifier().fit(DemoSet(still, still), Seeds(0))


def test_a_short_training_already_cleans_actions():
    """Not the best there is, but better than nothing: the whole of it works together."""
    purifier = DiffusionPurifier(
        reverse_step=150, training=Training(updates=300, batch_size=128), eta=1.0
    )
    demos = DemoSet(pointmass(8), corrupt(pointmass(4, seed=1), "gaussian", 0.6))
    purified = purifier.fit(demos, Seeds(0))(demos.supplementary)
    clean = demos.supplementary.extras["clean_actions"]
    before, after = (((d.actions - clean) ** 2).mean() for d in (demos.supplementary, purified))
    assert after < 0.7 * before
