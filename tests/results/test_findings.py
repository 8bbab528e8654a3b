"""Findings: what is computed from the rest."""

from dataclasses import replace

from support.findings import maintenance_findings


def test_the_gain_is_what_the_new_policy_earns_more():
    findings = maintenance_findings()
    assert replace(findings, performance=5.0, behavior_performance=2.0).gain == 3.0
    assert replace(findings, performance=-1.0, behavior_performance=2.0).gain == -3.0
