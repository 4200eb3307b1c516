# shellcheck shell=bash
# Two machines for a journey: network namespaces `left` (10.9.0.1) and `right` (10.9.0.2), each with
# a home of its own; or, with MACHINES="left middle right", three in a row: `middle` is 10.9.0.2 to
# the one and 10.9.1.1 to the other, 10.9.1.2. To be sourced as the first thing; it starts the
# script anew inside namespaces in which an ordinary user may do that; what runs on the machines is
# an ordinary user there, too.

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

# cable HOST ADDRESS HOST ADDRESS NAME: joins two machines.
cable() {
  ip link add "$5" netns "$1" type veth peer name "$5" netns "$3"
  ip -n "$1" address add "$2/24" dev "$5"
  ip -n "$3" address add "$4/24" dev "$5"
  ip -n "$1" link set "$5" up
  ip -n "$3" link set "$5" up
}

for host in ${MACHINES:=left right}; do
  ip netns add "$host"
  ip -n "$host" link set lo up
  mkdir "$JOURNEY_WORK/$host"
done
if [ "$MACHINES" = "left right" ]; then
  cable left 10.9.0.1 right 10.9.0.2 cable
else
  cable left 10.9.0.1 middle 10.9.0.2 cable0
  cable middle 10.9.1.1 right 10.9.1.2 cable1
fi

declare -A running
commands=0
said=$JOURNEY_WORK/said
began=$(date +%s%N)

# An ordinary user: a number that is not 0, no capabilities.
ordinary=(unshare --user --map-user=1000 --map-group=1000)

# enter HOST COMMAND...: becomes a command there, in its home, of an ordinary user.
enter() {
  local host=$1
  shift
  cd "$JOURNEY_WORK/$host"
  BYNAME_HOME=$PWD/.byname HOME=$PWD exec ip netns exec "$host" "${ordinary[@]}" "$@"
}

# within HOST COMMAND...: runs a command there.
within() {
  (enter "$@")
}

# Nobody is root there: journeys play what everybody may do.
for host in $MACHINES; do
  within "$host" bash -c '[ "$(id -u)" = 1000 ] && grep -q "^CapEff:.0*$" /proc/self/status'
done

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

# background HOST ARGUMENTS...: starts `byname ARGUMENTS` there; $started is its process, $log what
# it says.
background() {
  local host=$1
  shift
  commands=$((commands + 1))
  log=$JOURNEY_WORK/log.$commands
  printf '          %s$ byname %s &\n' "$host" "${*@Q}"
  enter "$host" "$BYNAME" "$@" >"$log" 2>&1 &
  started=$!
  running[$host]="${running[$host]-} $started"
}

# await WORDS: what was started last says them.
await() {
  for _ in $(seq 200); do
    grep -qF -- "$1" "$log" && return
    sleep 0.05
  done
  cat "$log"
  echo "never said: $1" >&2
  exit 1
}

# daemon HOST ARGUMENTS...: starts `byname ARGUMENTS` there; $link is what it prints.
daemon() {
  background "$@"
  await 'byname:/'
  link=$(grep -om1 'byname:/[^ ]*' "$log")
}

# stop HOST: ends all that was started there, without a word, as a power cut would.
stop() {
  local process
  for process in ${running[$1]-}; do
    kill -KILL "$process"
    wait "$process" || true
  done
}

arrived() {
  printf 'arrived: %d commands, %d ms\n' "$commands" $((($(date +%s%N) - began) / 1000000))
}
