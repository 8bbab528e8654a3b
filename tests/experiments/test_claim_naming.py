"""Names of who claims: few words, but never the same for two."""

from types import SimpleNamespace

from surestep.experiments.tables import claim_names


def claims(*settings):
    """Cells of one kind of certifier with these settings."""
    return [
        SimpleNamespace(cell=SimpleNamespace(certifier="posterior", certifier_setting=setting))
        for setting in settings
    ]


def test_settings_that_are_usually_left_out_tell_two_certifiers_apart():
    few, many, other = "draws=100, prior_weight=5", "draws=1000, prior_weight=5", "prior_weight=9"
    assert claim_names(claims(few, many, few, other)) == [
        "posterior, draws = 100, prior_weight = 5",
        "posterior, draws = 1000, prior_weight = 5",
        "posterior, draws = 100, prior_weight = 5",
        "posterior, c = 9",
    ]
    halves = claim_names(claims("train_share=0.5", "train_share=0.2"))
    assert halves == ["posterior, train_share = 0.5", "posterior, train_share = 0.2"]
