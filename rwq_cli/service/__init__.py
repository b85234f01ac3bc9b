"""Commands that run until they are stopped: rounds, reconnection, and what supervisors see."""
