"""Columns: names, roles, blocks and which side of a step they are on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.columns import (
    ROLES,
    Column,
    assign_roles,
    blocks,
    check_roles,
    columns,
    columns_from_json,
    columns_to_json,
    is_action_side,
)
from elute.errors import EluteError


@pytest.mark.parametrize(
    ("key", "size", "role"),
    [
        ("robot0_eef_quat", 4, "quaternion"),
        ("Body/Quaternion", 4, "quaternion"),
        ("quat", 4, "quaternion"),
        ("robot0_eef_quat", 3, "continuous"),
        ("square_quality", 4, "continuous"),
        ("task_one_hot", 5, "discrete"),
        ("phase", 1, "discrete"),
        ("is_open", 1, "discrete"),
        ("emphasis", 1, "continuous"),
        ("robot0_eef_pos", 3, "continuous"),
    ],
)
def test_roles_are_read_off_names(key, size, role):
    assert {column.role for column in columns(key, size)} == {role}


def test_an_integer_array_is_discrete():
    assert columns("object", 1, discrete=True)[0].role == "discrete"


def test_a_column_is_named_as_users_write_it():
    assert columns("quat", 4)[2].name == "quat[2]"


KEYS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True)


@given(KEYS, st.data())
def test_columns_survive_their_manifest(keys, data):
    made = tuple(
        Column(key, i, data.draw(st.sampled_from(ROLES)))
        for key in keys
        for i in range(data.draw(st.integers(1, 4)))
    )
    assert columns_from_json(columns_to_json(made)) == made
    found = blocks(made)
    assert [block.key for block in found] == keys
    assert [block.stop for block in found[:-1]] == [block.start for block in found[1:]]
    assert sum(block.size for block in found) == len(made)


def test_a_manifest_with_an_unknown_role_is_refused():
    with pytest.raises(EluteError, match="'odd' is no column role"):
        columns_from_json([{"key": "a", "roles": ["odd"]}])


def test_roles_are_assigned_to_keys_entries_and_ranges():
    known = (*columns("a", 3), *columns("b", 4))
    roles = [c.role for c in assign_roles(known, "a=constant, b[1]=discrete,b[2:4]=quaternion")]
    expected = ["constant"] * 3 + ["continuous", "discrete", "quaternion", "quaternion"]
    assert roles == expected
    assert assign_roles(known, "") == known


def test_of_two_assignments_the_later_counts():
    assert [c.role for c in assign_roles(columns("a", 2), "a=constant,a[1]=discrete")] == [
        "constant",
        "discrete",
    ]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("c=discrete", "'c', which is not here"),
        ("a[3]=discrete", "'a', which is not here"),
        ("a=odd", "'odd' is no column role"),
        ("a", "cannot read 'a'"),
        ("a[x]=discrete", "cannot read"),
        ("a[1:]=discrete", "cannot read"),
    ],
)
def test_a_specification_that_fits_nothing_is_refused(spec, says):
    with pytest.raises(EluteError, match=says):
        check_roles(spec, columns("a", 3))


def test_the_refusal_lists_what_there_is():
    with pytest.raises(EluteError, match=r"a\[0:3\], b\[0:1\]"):
        check_roles("c=discrete", (*columns("a", 3), *columns("b", 1)))


@pytest.mark.parametrize(
    "name", ["actions", "clean_actions", "infos/action_log_probs", "rewards", "dones", "terminals",
             "timeouts", "expert_masks", "Actions_abs", "action_dict/rel_pos"]
)  # fmt: skip
def test_what_belongs_to_the_action(name):
    assert is_action_side(name)


@pytest.mark.parametrize(
    "name", ["states", "observations", "infos/qpos", "operator", "reaction", "obs/image", "redone"]
)
def test_what_belongs_to_the_state(name):
    assert not is_action_side(name)
