"""The default timeouts, which the help names without loading the client."""

CONNECT_TIMEOUT_S = 5.0
# Longer than any single call of ours takes the server.
REPLY_TIMEOUT_S = 30.0
# A failover takes a cluster its node timeout and a few seconds, 15 s by default.
PATIENCE_S = 30.0
