#!/usr/bin/env bash
# One node of a job on several nodes; every node needs the checkout, the data and the run's folder
# under the same paths.
#
#   NODES=4 bash full_scale/cluster/node.sh head RECIPE [options of m2po-lab launch]
#   HEAD=ADDRESS bash full_scale/cluster/node.sh worker
#
# Start the head first. It starts ray, waits until all nodes have joined, and launches the recipe;
# the others lend their GPUs until the head ends. All of them need one token, so that nobody else
# can join: ~/.ray/auth_token where the home folder is shared, else RAY_AUTH_TOKEN.
set -euo pipefail

role=${1:?head or worker}
shift
port=${PORT:-6379}
read -ra ray_options <<< "${RAY_OPTIONS:-}"
export RAY_AUTH_MODE=token

if [ "$role" = worker ]; then
    exec ray start --address="${HEAD:?address of the head}:$port" --block "${ray_options[@]}"
fi

[ -n "${RAY_AUTH_TOKEN:-}" ] || ray get-auth-token --generate > /dev/null
ray start --head --port="$port" --block "${ray_options[@]}" &
cluster=$!
trap 'kill "$cluster" 2>/dev/null; wait "$cluster" || true' EXIT
export RAY_ADDRESS="${HEAD:-127.0.0.1}:$port"
python -m full_scale.cluster.wait "${NODES:?number of nodes}"
${COMMAND:-m2po-lab launch} "$@"
