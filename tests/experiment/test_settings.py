"""Settings by name are checked before anything runs."""

import pytest

from elute.errors import EluteError
from elute.experiment.methods import METHODS, find_method
from elute.experiment.settings import parse, with_settings
from elute.learners.adversarial import OnlineMethod
from elute.learners.bc import BC


def test_values_are_read_as_json_or_words():
    given = ["updates=50", "actor.hidden=[8, 4]", "loss=nll", "learning_rate=1e-2", "on=optimal"]
    changed = with_settings(BC(), parse(given))
    assert (changed.updates, changed.loss, changed.on) == (50, "nll", "optimal")
    assert changed.actor.hidden == (8, 4)
    assert changed.learning_rate == pytest.approx(0.01)
    assert changed.batch_size == BC().batch_size


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("updats=3", "did you mean updates"),
        ("actor.hiden=[3]", "did you mean hidden"),
        ("updates.more=3", "nothing to set inside"),
        ("updates=many", "valid integer"),
        ("loss=l1", "'mse' or 'nll'"),
        ("updates", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
    ],
)
def test_what_does_not_fit_is_refused(given, says):
    with pytest.raises(EluteError, match=says):
        with_settings(BC(), parse([given]))


@pytest.mark.parametrize("name", METHODS)
def test_every_preset_of_a_method_is_a_learner_of_that_name(name):
    for preset in METHODS[name]:
        method = find_method(name, preset)
        assert hasattr(method, "fit") or isinstance(method, OnlineMethod)


@pytest.mark.parametrize("name", METHODS)
def test_papers_take_the_last_weights_and_we_their_average(name):
    for preset in METHODS[name]:
        share = getattr(find_method(name, preset), "averaging", 0.0)
        assert preset == "default" or share == 0.0
    if name in ("bc", "bc-opt", "bcnd", "dwbc", "isw-bc", "demodice", "smodice", "dbc"):
        assert find_method(name).averaging == 0.99


def test_an_unknown_method_or_preset_names_the_nearest():
    with pytest.raises(EluteError, match="did you mean bc-opt"):
        find_method("bc-optt")
    with pytest.raises(EluteError, match="there are default, paper"):
        find_method("bc", "papr")
