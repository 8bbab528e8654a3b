"""Names of who claims: few words, but never the same for two."""

from types import SimpleNamespace

from surestep.experiments.claim_naming import certifier_names


def claims(*settings):
    """Cells of one kind of certifier with these settings."""
    return [
        SimpleNamespace(cell=SimpleNamespace(certifier="posterior", certifier_setting=setting))
        for setting in settings
    ]


def test_settings_that_are_usually_left_out_tell_two_certifiers_apart():
    few, many, other = "draws=100, prior_weight=5", "draws=1000, prior_weight=5", "prior_weight=9"
    named = certifier_names(claims(few, many, few, other))
    assert named == {
        ("posterior", few): "posterior, draws = 100, prior_weight = 5",
        ("posterior", many): "posterior, draws = 1000, prior_weight = 5",
        ("posterior", other): "posterior, c = 9",
    }
    halves = certifier_names(claims("train_share=0.5", "train_share=0.2"))
    assert [*halves.values()] == ["posterior, train_share = 0.5", "posterior, train_share = 0.2"]
