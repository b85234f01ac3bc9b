"""rwq: the command line for redis-work-queue. CONTRIBUTING.md says where to look for what."""

__version__ = "0.3.0"
