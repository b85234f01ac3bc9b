#!/bin/sh
# The cleaning process in a container. SIGTERM, which `docker stop` sends, ends it at once. The health check
# is here and not in the image, because only --listen answers it.
exec docker run --rm --name rwq-clean \
    -e RWQ_URL="${RWQ_URL:-redis://host.docker.internal:6379/0}" -e RWQ_PASSWORD \
    -p 127.0.0.1:9113:9113 --restart no --health-interval 30s --health-timeout 10s \
    --health-cmd "python -c 'import urllib.request as r; r.urlopen(\"http://127.0.0.1:9113/healthz\", timeout=5)'" \
    rwq clean light -q "${RWQ_QUEUE:-jobs}" --every 30s --deep-every 6h --listen :9113
