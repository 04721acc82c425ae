"""The PromQL of the dashboards, each query under the name of what it answers.

Units are those of the metrics (ratios, watts, bytes) unless a name says otherwise. A query uses
only series of the exporters' contract and recorded ones.
"""
