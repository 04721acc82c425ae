"""What differs from site to site: names of the job and of labels, and what else tells series apart.

Dashboards are written for the names that are shipped; `expr` puts a site's in their place.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # Grafana's settings: JSON of any shape

from seedance_obs.errors import UsageError

JOB = re.compile(r'\bjob="gpu"')
# The label, not the first part of a recorded name (cluster:...) nor the variable ($cluster).
CLUSTER = re.compile(r"(?<![$\w])cluster(?![\w:])")
SCOPE = re.compile(r'(?<=cluster=~"\$cluster")')
LABEL = re.compile(r"[a-zA-Z_]\w*")
MATCHER = re.compile(r'[a-zA-Z_]\w*(=|!=|=~|!~)"[^"\\]*"')


@dataclass(frozen=True, slots=True)
class Options:
    """A site's names; the defaults are those of the committed files.

    `matchers` (such as `environment="prod"`) are added to every query; recorded series have to
    carry these labels too, as external labels do. `scrape_interval` bounds what `$__rate_interval`
    looks at from below.
    """

    datasource: str = ""
    job: str = "gpu"
    cluster_label: str = "cluster"
    matchers: tuple[str, ...] = ()
    scrape_interval: str = "30s"

    def __post_init__(self) -> None:
        if not LABEL.fullmatch(self.cluster_label):
            raise UsageError(f"a cluster label is a word such as region, not {self.cluster_label}")
        if '"' in self.job or "\\" in self.job:
            raise UsageError(f"a job has neither quotes nor backslashes: {self.job}")
        for matcher in self.matchers:
            if not MATCHER.fullmatch(matcher):
                raise UsageError(f'a matcher looks like environment="prod", not {matcher}')

    def expr(self, text: str) -> str:
        """A query, or another text that names labels, in the site's names."""
        scoped = SCOPE.sub("".join(f",{matcher}" for matcher in self.matchers), text)
        return CLUSTER.sub(self.cluster_label, JOB.sub(f'job="{self.job}"', scoped))

    def legend(self, text: str) -> str:
        """A legend in the site's names: a template of labels."""
        return text.replace("{{cluster}}", f"{{{{{self.cluster_label}}}}}")

    def renamed(self, value: Any) -> Any:
        """Grafana's settings with the cluster's column called as the site calls the label."""
        if isinstance(value, str):
            named = self.cluster_label if value == "cluster" else value
            return named.replace(".cluster}", f".{self.cluster_label}}}")
        if isinstance(value, Mapping):
            return {self.renamed(key): self.renamed(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.renamed(item) for item in value]
        return value
