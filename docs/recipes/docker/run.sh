#!/bin/sh
# The cleaning process in a container. SIGTERM, which `docker stop` sends, ends it at once.
exec docker run --rm --name rwq-clean \
    -e RWQ_URL="${RWQ_URL:-redis://host.docker.internal:6379/0}" -e RWQ_PASSWORD \
    -p 127.0.0.1:9113:9113 --restart no \
    rwq clean light -q "${RWQ_QUEUE:-jobs}" --every 30s --deep-every 6h --listen :9113
