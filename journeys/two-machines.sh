# shellcheck shell=bash
# Two machines for a journey: network namespaces `left` (10.9.0.1) and `right` (10.9.0.2), each with
# a home of its own. To be sourced as the first thing; it starts the script anew inside namespaces
# in which an ordinary user may do that.

if [ -z "${JOURNEY_WORK-}" ]; then
  byname=$(realpath "${BYNAME:-$(dirname "$0")/../target/release/byname}")
  [ -x "$byname" ] || { echo "no $byname: run scripts/build first" >&2; exit 1; }
  JOURNEY_WORK=$(mktemp -d)
  export JOURNEY_WORK BYNAME=$byname
  trap 'rm -rf "$JOURNEY_WORK"' EXIT
  unshare --user --map-root-user --net --mount --pid --fork --kill-child \
    bash -c 'mount -t tmpfs journey /run && mkdir /run/netns && exec "$@"' - "$0" "$@"
  exit
fi

ip netns add left
ip netns add right
ip link add cable netns left type veth peer name cable netns right
address() { if [ "$1" = left ]; then echo 10.9.0.1; else echo 10.9.0.2; fi; }
for host in left right; do
  ip -n "$host" address add "$(address "$host")/24" dev cable
  ip -n "$host" link set cable up
  ip -n "$host" link set lo up
  mkdir "$JOURNEY_WORK/$host"
done

commands=0
said=$JOURNEY_WORK/said
began=$(date +%s%N)

# within HOST COMMAND...: runs a command there, in its home.
within() {
  local host=$1
  shift
  (cd "$JOURNEY_WORK/$host" && BYNAME_HOME=$PWD/.byname HOME=$PWD \
    exec ip netns exec "$host" "$@")
}

# on HOST ARGUMENTS...: runs `byname ARGUMENTS` there, which has to end with CODE (0).
on() {
  local host=$1 from code=0
  shift
  commands=$((commands + 1))
  from=$(date +%s%N)
  within "$host" "$BYNAME" "$@" >"$said" 2>&1 || code=$?
  printf '%5d ms  %s$ byname %s\n' $((($(date +%s%N) - from) / 1000000)) "$host" "${*@Q}"
  if [ "$code" != "${CODE:-0}" ]; then
    cat "$said"
    echo "ended with $code and not ${CODE:-0}" >&2
    exit 1
  fi
}

# expect WORDS: the last command said them.
expect() {
  grep -qF -- "$1" "$said" || { cat "$said"; echo "not said: $1" >&2; exit 1; }
}

# daemon HOST ARGUMENTS...: starts `byname ARGUMENTS` there; $link is what it prints.
daemon() {
  local host=$1 log=$JOURNEY_WORK/$1.log
  shift
  commands=$((commands + 1))
  within "$host" "$BYNAME" "$@" >"$log" 2>&1 &
  for _ in $(seq 200); do
    link=$(grep -om1 'byname:/[^ ]*' "$log") && return
    sleep 0.05
  done
  cat "$log"
  echo "byname $* never printed a link" >&2
  exit 1
}

arrived() {
  printf 'arrived: %d commands, %d ms\n' "$commands" $((($(date +%s%N) - began) / 1000000))
}
