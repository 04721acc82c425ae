"""The host's energy by workload, while workloads leave on another thread."""

from seedance_obs.exporter.host_energy import HostEnergy
from seedance_obs.exporter.roster import Known
from seedance_obs.sources.cpu_times import CpuTimes, CpuUse
from seedance_obs.sources.rapl import Rapl, RaplReading, RaplZone
from seedance_obs.workload import Workload

ACCOUNT = "research/pod-a-1"
KNOWN = {ACCOUNT: Known(Workload("pod", "a", 1, cgroup="/a"), "research", 0.0)}


class Package(Rapl):
    microjoules = 0

    def read(self):
        self.microjoules += 1000
        return RaplReading((RaplZone("package", "package-0", self.microjoules, None),))


class Busy(CpuTimes):
    def read(self, owners):
        return CpuUse(100, 100, dict.fromkeys(owners, 100))


def test_one_that_leaves_while_it_is_read_stays_its_tenants_and_is_forgotten(tmp_path):
    energy = HostEnergy(Package(tmp_path), Busy(tmp_path), gap_seconds=10)
    energy.advance(KNOWN, {}, 1.0)
    energy.advance(KNOWN, {}, 2.0)
    energy.leave([ACCOUNT])
    energy.advance(KNOWN, {}, 3.0)  # which had listed it before it left
    energy.advance({}, {}, 4.0)
    assert ACCOUNT not in energy.as_state()["account"]["kinds"]["package"]["balances"]
    assert energy.view(()).tenants == {("package", "research"): 2000, ("package", "system"): 1000}
