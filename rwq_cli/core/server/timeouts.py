"""The default timeouts, which the help names without loading the client."""

CONNECT_TIMEOUT_S = 5.0
# Longer than any single call of ours takes the server.
REPLY_TIMEOUT_S = 30.0
