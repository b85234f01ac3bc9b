"""rwq: the command line for redis-work-queue. CONTRIBUTING.md says which file answers what."""

__version__ = "0.2.0"
