# shellcheck shell=bash
# What scripts/test and scripts/check share: steps whose output is kept, timed and summed up.
#
# A step prints as one piece when it has ended, so that steps can run side by side. A failed step
# does not stop the next. Of a long log only the end may be kept, so what went wrong is said once
# more there.

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
trap 'unfinished; kill $(jobs -p) 2>/dev/null; exit 143' INT TERM

# Lines that are repeated for one failed step.
evidence_lines_max=60

# step NAME COMMAND...: the outcome is the exit code; a detail for the summary stands in the file
# NAME.detail if the command wrote one.
step() {
    local name=$1 began=$SECONDS outcome=ok
    shift
    echo "== $name begins"
    : >"$log/$name.begun"
    "$@" >"$log/$name" 2>&1 || outcome=FAILED
    local took=$((SECONDS - began))
    printf '%-9s %-6s %4d s  %s\n' "$name" "$outcome" "$took" \
        "$(cat "$log/$name.detail" 2>/dev/null)" >"$log/$name.summary"
    {
        flock 9
        echo "== $name: $outcome after $took s"
        cat "$log/$name"
    } 9>"$log/lock"
    rm "$log/$name.begun"
    [ "$outcome" = ok ] || : >"$log/$name.failed"
}

# detail NAME TEXT: what the summary says of a step besides its outcome.
detail() { printf '%s' "$2" >"$log/$1.detail"; }

# counts FILE SKIPPED: the totals of Rust tests.
counts() {
    awk -v s="$2" '
        /^test result:/ { sub(/.*: [a-zA-Z]+\. /, ""); p += $1; f += $3; i += $5 }
        END { printf "%d passed, %d failed, %d skipped", p - s, f, i + s }' "$1"
}

# unsteady FILE: how many of the tests that failed passed when they were run again, alone.
unsteady() {
    local count
    count=$(grep -ac '^UNSTEADY: ' "$1")
    [ "$count" = 0 ] || printf ', %d unsteady' "$count"
}

# java_counts FILE: the totals that Maven prints last; nothing if it printed none.
java_counts() {
    awk '/Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: [0-9]+(, Flakes: .*)?$/ {
            gsub(/[^0-9]+/, " "); split($0, n, " ")
            text = sprintf("%d passed, %d failed, %d skipped",
                n[1] - n[2] - n[3] - n[4], n[2] + n[3], n[4])
        }
        END { printf "%s", text }' "$1"
}

# java_unsteady FILE: how many tests passed only when Maven ran them again.
java_unsteady() {
    awk '/Tests run: .*, Flakes: [0-9]+$/ { count = $NF } END { print count + 0 }' "$1"
}

# java_failures FOLDER: what each class printed that has a failed test.
java_failures() {
    local report
    for report in "$1"/*.txt; do
        if grep -qE '(FAILURE|ERROR)!$' "$report" && [ -e "${report%.txt}-output.txt" ]; then
            echo "---- $(basename "$report" .txt) printed ----"
            tail -n 120 "${report%.txt}-output.txt"
        fi
    done
}

# telling NAME: of what a step printed, what says why it failed; everything if nothing is known to.
telling() {
    case $1 in
        *tests)
            # What failed tests printed; then what failed or did not build, by name.
            awk '/^---- .* stdout ----$/ { shown = 1 } /^failures:$/ { shown = 0 } shown' "$log/$1"
            grep -aE '^test .* FAILED$|^error|^SKIPPED' "$log/$1" ;;
        campaign) grep -aE '^seed |^repeat it|panicked|^error' "$log/$1" ;;
        planted) awk '!/^ / { shown = !/ (found|passes)/ } shown' "$log/$1" ;;
        hadoop | jobs | newest)
            awk '/^---- .* printed ----$/ { shown = 1 } /^== / { shown = 0 } shown' "$log/$1"
            grep -aE '^\[ERROR\]|error:' "$log/$1" ;;
        interop*)
            awk '/^[^ ].* \.\.\. / { shown = !/ \.\.\. ok/ }
                /^skipped because/ { shown = 1 } shown' "$log/$1" ;;
        *) cat "$log/$1" ;;
    esac
}

# unfinished: the end of what the steps that are not over have printed.
unfinished() {
    local begun name
    for begun in "$log"/*.begun; do
        [ -e "$begun" ] || continue
        name=$(basename "$begun" .begun)
        echo "== interrupted: $name"
        tail -n "$evidence_lines_max" "$log/$name"
    done
}

# summary NAME...: the evidence of what failed, then one line for each step; false if any failed or
# did not run.
summary() {
    local name status=0
    for name; do
        [ -e "$log/$name.failed" ] || continue
        echo "== what went wrong: $name"
        telling "$name" >"$log/evidence" || true
        [ -s "$log/evidence" ] || cp "$log/$name" "$log/evidence"
        tail -n "$evidence_lines_max" "$log/evidence"
    done
    echo "== summary ($SECONDS s)"
    for name; do
        grep -a '^UNSTEADY: ' "$log/$name" 2>/dev/null
        [ ! -e "$log/$name.failed" ] || status=1
        cat "$log/$name.summary" 2>/dev/null || { echo "$name did not run" && status=1; }
    done
    return "$status"
}

# total SUMMARY...: the sum of what steps have counted.
total() {
    cat "$@" | awk 'match($0, /[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped/) {
            split(substr($0, RSTART, RLENGTH), n, /[^0-9]+/)
            p += n[1]; f += n[2]; s += n[3]
        }
        END { printf "total: %d passed, %d failed, %d skipped\n", p, f, s }'
}
