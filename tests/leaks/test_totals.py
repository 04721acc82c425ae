"""What the processes of a suspect show together."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.leaks.suspect import Finding, Suspect
from seedance_obs.leaks.totals import totals_of
from seedance_obs.process_tree import ProcessName


def found(pid: int, rate: float | None, rule: str = "fast") -> Finding:
    evidence = {} if rate is None else {"growth_fds_per_second": rate}
    return Finding("fd_growth", 0.0, rule, ProcessName(pid, 1), evidence=evidence)


def suspect(*findings: Finding) -> Suspect:
    processes = tuple(dict.fromkeys(finding.process for finding in findings))
    return Suspect("x", findings[0], processes=processes, findings=findings)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_rates_add_up_over_the_processes(rates):
    whole = suspect(*[found(pid, rate) for pid, rate in enumerate(rates)])
    assert totals_of(whole) == {"growth_fds_per_second": sum(rates)}


def test_a_process_that_two_rules_found_counts_once_by_its_worst_finding():
    whole = suspect(found(7, 9.0), found(7, 0.2, "slow"), found(8, 1.0))
    assert totals_of(whole) == {"growth_fds_per_second": 10.0}


def test_a_sum_that_lacks_a_process_is_none():
    assert totals_of(suspect(found(7, 9.0), found(8, None))) == {}
    assert totals_of(suspect(found(7, 9.0), found(8, float("inf")))) == {}
    untold = replace(suspect(found(7, 9.0)), processes=(ProcessName(7, 1), ProcessName(8, 1)))
    assert totals_of(untold) == {}


def test_what_no_process_is_behind_has_no_sum():
    evidence = {"gpu_memory_bytes": 3.0}
    assert totals_of(Suspect("x", Finding("spinning", 0.0, evidence=evidence))) == {}
