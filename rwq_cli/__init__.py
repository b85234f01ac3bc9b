"""rwq: the command line for redis-work-queue."""

__version__ = "0.1.0"
