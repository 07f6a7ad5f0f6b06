"""Every defect is planted in clean data and found; clean data stays clean."""

from dataclasses import replace

import numpy as np
import pytest

from elute.columns import columns
from elute.demos.audit.audit import audit, own_bounds
from elute.demos.audit.summary import Bounds
from elute.demos.files import open_demos, save
from elute.demos.pointmass import pointmass
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations

WIDE = Bounds(np.array([-20.0]), np.array([20.0]))


def finding(found, code):
    matching = [f for f in found.findings if f.code == code]
    assert len(matching) == 1, [f.code for f in found.findings]
    return matching[0]


def codes(found):
    return {f.code for f in found.findings}


def changed(demos, **arrays):
    return replace(demos, **arrays)


def test_clean_data_is_clean():
    assert codes(audit(pointmass(20), bounds=WIDE)) == set()


def test_non_finite_values_are_an_error_with_their_place():
    demos = pointmass(5)
    actions = demos.actions.copy()
    actions[[7, 9], 1] = [np.nan, np.inf]
    found = finding(audit(changed(demos, actions=actions)), "non-finite")
    assert found.severity == "error"
    assert found.numbers == {"rows": 2, "first_row": 7, "columns": ["force[1]"]}


def test_simulator_states_in_place_of_observations_are_a_warning():
    demos = pointmass(5)
    width = demos.observations.shape[1]
    raw = replace(demos, observation_columns=columns("states", width))
    assert finding(audit(raw), "raw-states").severity == "warning"
    mixed = (*columns("states", width - 1), *columns("goal", 1))
    assert "raw-states" not in codes(audit(replace(demos, observation_columns=mixed)))


def test_broken_rewards_are_a_warning_only():
    demos = pointmass(5)
    rewards = demos.rewards.copy()
    rewards[4] = np.nan
    found = audit(changed(demos, rewards=rewards))
    assert finding(found, "non-finite-rewards").severity == "warning"
    assert found.episodes[0]["return"] == "error"
    assert "non-finite" not in codes(found)


def test_constant_columns_are_noted():
    demos = pointmass(5)
    observations = demos.observations.copy()
    observations[:, 4] = 0.25
    found = finding(audit(changed(demos, observations=observations)), "constant-columns")
    assert found.numbers["columns"] == ["goal[0]"]


def test_duplicate_columns_are_named_in_pairs():
    demos = pointmass(5)
    observations = demos.observations.copy()
    observations[:, 3] = observations[:, 0]
    found = finding(audit(changed(demos, observations=observations)), "duplicate-columns")
    assert found.numbers["columns"] == [["position[0]", "velocity[1]"]]


def test_a_gripper_that_is_not_declared_is_noted_until_it_is():
    demos = pointmass(5)
    gripper = np.where(np.arange(len(demos)) % 3, 1.0, -1.0)[:, None]
    actions = np.concatenate([demos.actions, gripper], axis=1)
    named = columns("force", 2) + columns("grip", 1)
    with_gripper = changed(demos, actions=actions, action_columns=named)
    assert finding(audit(with_gripper), "undeclared-discrete").numbers["columns"] == ["grip[0]"]
    declared = columns("force", 2) + columns("grip", 1, discrete=True)
    assert "undeclared-discrete" not in codes(audit(changed(with_gripper, action_columns=declared)))


def test_duplicate_rows_and_episodes():
    demos = pointmass(6)
    found = audit(demos + demos.select([2]))
    assert finding(found, "duplicate-episodes").numbers["episodes"] == [[2, 6]]
    repeated = int(demos.episodes.lengths[2])
    assert finding(found, "duplicate-rows").numbers["rows"] == repeated


def test_round_numbers_are_not_mistaken_for_duplicates():
    grid = np.stack(np.meshgrid(np.arange(64.0), np.arange(64.0)), axis=-1).reshape(-1, 2)
    demos = Demonstrations(observations=grid, actions=grid[:, :1] * 0 + np.arange(4096.0)[:, None],
                           episodes=Episodes.of([4096]))  # fmt: skip
    assert "duplicate-rows" not in codes(audit(demos))
    tiny = replace(demos, actions=np.zeros((4096, 1)))
    assert "duplicate-rows" not in codes(audit(tiny))


def test_actions_outside_their_bounds_and_at_them():
    demos = pointmass(10)
    found = audit(demos, bounds=Bounds(np.array([-1.0]), np.array([1.0])))
    outside = finding(found, "out-of-bounds")
    beyond = (np.abs(demos.actions) > 1 + 2e-6).sum(axis=0)
    assert outside.numbers["rows_by_column"] == beyond.tolist()
    assert outside.numbers["excess"] == pytest.approx(np.abs(demos.actions).max() - 1)
    assert outside.repair == "clip"
    tight = audit(demos, bounds=Bounds(np.array([-0.2]), np.array([0.2])))
    assert "saturated" in codes(tight)
    assert "out-of-bounds" not in codes(audit(demos))  # unknown bounds: nothing is claimed


def test_bounds_are_read_off_a_minari_dataset(tmp_path):
    demos = pointmass(3)
    space = '{"type": "Box", "dtype": "float64", "shape": [2], "low": [-1, -2], "high": [1, 2]}'
    known = replace(demos.provenance, metadata={"minari": {"action_space": space}})
    save(changed(demos, provenance=known), tmp_path / "p-v0", format="minari")
    bounds = own_bounds(open_demos(tmp_path / "p-v0"))
    assert bounds.low.tolist() == [-1, -2]
    assert bounds.high.tolist() == [1, 2]


def test_bounds_of_another_number_of_actions_are_refused():
    with pytest.raises(EluteError, match="bounds for 3 action columns; there are 2"):
        audit(pointmass(3), bounds=Bounds(np.zeros(3), np.ones(3)))


def test_a_sudden_jump_is_found_with_its_row():
    rng = np.random.default_rng(0)
    actions = np.cumsum(0.01 * rng.standard_normal((1000, 2)), axis=0)
    actions[500:, 0] += 3.0
    demos = Demonstrations(
        observations=rng.standard_normal((1000, 3)), actions=actions, episodes=Episodes.of([1000])
    )
    assert finding(audit(demos), "action-jumps").numbers["rows"] == [500]


def test_bang_bang_control_is_not_a_row_of_jumps():
    rng = np.random.default_rng(0)
    actions = rng.choice([-1.0, 1.0], size=(1000, 1)) * (rng.random((1000, 1)) < 0.3)
    demos = Demonstrations(
        observations=rng.standard_normal((1000, 3)), actions=actions, episodes=Episodes.of([1000])
    )
    assert "action-jumps" not in codes(audit(demos))


def test_a_gripper_that_switches_is_no_jump():
    rng = np.random.default_rng(0)
    gripper = np.where(np.arange(3500) // 175 % 2, 1.0, -1.0)[:, None]
    actions = np.concatenate([np.cumsum(0.01 * rng.standard_normal((3500, 1)), 0), gripper], 1)
    for kind in (False, True):
        named = (*columns("arm", 1), *columns("grip", 1, discrete=kind))
        demos = Demonstrations(
            observations=rng.standard_normal((3500, 2)), actions=actions, action_columns=named,
            episodes=Episodes.of([3500]),
        )  # fmt: skip
        assert "action-jumps" not in codes(audit(demos))


def test_lengths_that_vary_are_no_time_limit():
    rng = np.random.default_rng(0)
    lengths = rng.integers(10, 15, 60)
    states = rng.standard_normal((lengths.sum(), 3))
    demos = Demonstrations(observations=states, actions=states[:, :1] * 2,
                           episodes=Episodes.of(lengths, [True] * 60))  # fmt: skip
    assert "timeout-as-terminal" not in codes(audit(demos))


def test_a_column_that_only_varies_by_rounding_has_no_scale():
    good, other = pointmass(20, seed=1), pointmass(20, seed=2)
    rounded = good.observations.copy()
    rounded[:, 4] = 0.3 + 1e-13 * np.arange(len(good))
    found = audit(other, optimal=changed(good, observations=rounded))
    assert "scale-mismatch" not in codes(found)


def test_huge_values_are_no_error_of_ours():
    demos = pointmass(5)
    found = audit(changed(demos, observations=demos.observations * 1e300))
    assert all(isinstance(row["velocity"], float) for row in found.episodes)


def test_a_missing_boundary_shows_as_a_broken_step():
    demos = pointmass(3)
    lengths = demos.episodes.lengths.tolist()
    joined = Episodes.of([lengths[0] + lengths[1], lengths[2]], [True, True])
    found = finding(audit(changed(demos, episodes=joined)), "broken-steps")
    assert found.numbers["rows"] == [lengths[0] - 1]


def with_ends(demos, terminated, truncated):
    ends = Episodes.of(demos.episodes.lengths, terminated, truncated)
    return changed(demos, episodes=ends)


def test_episodes_without_a_flag():
    demos = pointmass(3)
    found = audit(with_ends(demos, [True, False, True], [False] * 3))
    assert finding(found, "unended-episodes").numbers["episodes"] == [1]


def test_one_step_episodes():
    demos = pointmass(2)
    found = audit(demos.rows(0, 1) + demos.select([1]))
    assert finding(found, "one-step-episodes").numbers["episodes"] == [0]


def test_time_outs_stored_as_terminals():
    rng = np.random.default_rng(0)
    states = rng.standard_normal((170, 3))
    lengths = [50, 50, 50, 20]
    demos = Demonstrations(observations=states, actions=states[:, :1] * 2,
                           episodes=Episodes.of(lengths, [True] * 4))  # fmt: skip
    found = finding(audit(demos), "timeout-as-terminal")
    assert found.numbers == {"length": 50, "episodes": [0, 1, 2]}
    cut = with_ends(demos, [False] * 3 + [True], [True] * 3 + [False])
    assert "timeout-as-terminal" not in codes(audit(cut))
    assert finding(audit(demos, horizon=20), "timeout-as-terminal").numbers["episodes"] == [3]


def test_shared_rows_between_the_two_sets():
    demos = pointmass(10)
    found = audit(demos.select(range(5)), optimal=demos.select([4, 5, 6, 7, 8]))
    assert finding(found, "shared-rows").numbers["rows"] == int(demos.episodes.lengths[4])


def test_units_that_differ_are_found_and_guessed():
    good, other = pointmass(20, seed=1), pointmass(20, seed=2)
    observations = other.observations.copy()
    observations[:, 0] *= 180 / np.pi
    found = finding(
        audit(changed(other, observations=observations), optimal=good), "scale-mismatch"
    )
    assert found.numbers["columns"] == ["position[0]"]
    assert "degrees" in found.message
    assert "scale-mismatch" not in codes(audit(other, optimal=good))


def test_a_shifted_origin_is_a_scale_mismatch_too():
    good, other = pointmass(20, seed=1), pointmass(20, seed=2)
    observations = other.observations.copy()
    observations[:, 1] += 50
    found = finding(
        audit(changed(other, observations=observations), optimal=good), "scale-mismatch"
    )
    assert found.numbers["columns"] == ["position[1]"]


def test_too_few_optimal_rows():
    good = pointmass(5, seed=1).first(20)
    assert finding(audit(pointmass(5), optimal=good), "few-optimal").numbers["rows"] == 20


def test_coverage_is_low_far_away_and_fine_at_home():
    good, other = pointmass(60, seed=1), pointmass(20, seed=2)
    assert "low-coverage" not in codes(audit(other, optimal=good))
    observations = other.observations.copy()
    observations[:, :2] += 3 * np.sign(observations[:, :2])
    far = finding(audit(changed(other, observations=observations), optimal=good), "low-coverage")
    assert far.numbers["distance_ratio"] > 4


def test_few_optimal_rows_say_nothing_about_distance():
    good, other = pointmass(60, seed=1).first(400), pointmass(20, seed=2)
    far = changed(other, observations=other.observations + 30)
    assert "low-coverage" not in codes(audit(far, optimal=good))


def test_states_that_never_change_are_nowhere_far():
    good, other = (
        changed(d, observations=np.ones_like(d.observations))
        for d in (pointmass(40, seed=1), pointmass(5, seed=2))
    )
    assert "low-coverage" not in codes(audit(other, optimal=good))


def test_optimal_rows_that_stand_still_say_nothing_about_distance():
    good, other = pointmass(40, seed=1), pointmass(5, seed=2)
    still = changed(good, observations=np.zeros_like(good.observations))
    assert "low-coverage" not in codes(audit(other, optimal=still))


def test_sets_of_other_dimensions_are_refused():
    good = pointmass(3)
    other = changed(good, actions=good.actions[:, :1], action_columns=columns("force", 1))
    with pytest.raises(EluteError, match="2 action columns"):
        audit(other, optimal=good)


def test_a_misaligned_optimal_set_is_reported_with_its_file(data_folder):
    noisy, good = (
        data_folder / "halfcheetah/d1-l3_action-noise-0.25.h5",
        data_folder / "halfcheetah/expert.h5",
    )
    found = finding(audit(open_demos(noisy), optimal=open_demos(good)), "misaligned")
    assert found.file == str(good)


def test_findings_come_most_severe_first():
    demos = pointmass(5)
    observations = demos.observations.copy()
    observations[3] = np.nan
    observations[:, 5] = 1.0
    found = audit(with_ends(changed(demos, observations=observations), [False] * 5, [False] * 5))
    assert [f.severity for f in found.findings] == sorted(
        (f.severity for f in found.findings), key=["error", "warning", "note"].index
    )
    assert len({f.severity for f in found.findings}) == 3


def test_chunks_of_any_size_give_the_same_audit(monkeypatch):
    demos = pointmass(12)
    whole = audit(demos, bounds=WIDE).to_json()
    from elute.demos.audit import summary  # noqa: PLC0415 (to change its chunks)

    chunked = summary.chunks
    for rows in (7, 50):
        monkeypatch.setattr(summary, "chunks", lambda s, r=rows: chunked(s, r))
        cut = audit(demos, bounds=WIDE).to_json()
        assert cut["findings"] == whole["findings"]
        for one, other in zip(cut["episodes"], whole["episodes"], strict=True):
            assert one["return"] == pytest.approx(other["return"])
            assert one["end_distance"] == other["end_distance"]


def test_provenance_names_the_file_in_every_finding():
    demos = changed(pointmass(3), provenance=Provenance(source="x.h5"))
    found = audit(with_ends(demos, [False] * 3, [False] * 3))
    assert {f.file for f in found.findings} == {"x.h5"}


def test_actions_that_stay_infinite_are_a_finding_and_no_warning():
    demos = pointmass(5)
    actions = demos.actions.copy()
    actions[1:4, 0] = np.inf
    assert "non-finite" in codes(audit(changed(demos, actions=actions)))
