"""The name of an account: who pays, and the workload that it is for.

Tenants are printable texts, workloads are named by anything that a cgroup may be called. What
stands between them is no printable character, so the first one in a name ends the tenant.
"""

_SEPARATOR = "\x1f"  # ASCII's unit separator


def account_name(tenant: str, workload: str) -> str:
    """The account of a workload, by its key, and a tenant."""
    return f"{tenant}{_SEPARATOR}{workload}"


def tenant_of(account: str) -> str:
    """Who pays for an account; what nobody pays for goes by its own name."""
    return account.partition(_SEPARATOR)[0]


def workload_of(account: str) -> str:
    """The key of the workload that an account is for; empty for what is nobody's work."""
    return account.partition(_SEPARATOR)[2]
