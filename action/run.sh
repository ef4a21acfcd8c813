#!/usr/bin/env bash
# Runs the agent for action.yml and leaves result.json, session.jsonl and session.html in $RESULTS.
set -uo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
source "$here/event.sh"

reason="$(foreign_with_rights)"
if [ -n "$reason" ]; then
  echo "The action does not run: $reason" >&2
  exit 2
fi
if has_stored_token; then
  echo 'The action does not run: the checkout has left its token in .git/config, where commands of the agent can read it. Use actions/checkout with persist-credentials: false.' >&2
  exit 2
fi
mkdir -p "$RESULTS"
options=(--sandbox required --max-cost "$MAX_COST" --max-minutes "$MAX_MINUTES" --json)
[ -z "${MODEL:-}" ] || options+=(--model "$MODEL")
# The agent needs the key of its model and no token of the repository.
env -u GH_TOKEN -u GITHUB_TOKEN -u ACTIONS_RUNTIME_TOKEN -u ACTIONS_ID_TOKEN_REQUEST_TOKEN \
  tapetree run "${options[@]}" -- "$PROMPT" >"$RESULTS/result.json"
status=$?
session="$(member session_id <"$RESULTS/result.json")"
if [ -n "$session" ]; then
  tapetree sessions export "$session" --yes --output "$RESULTS/session.html" >/dev/null || status=1
  tapetree sessions export "$session" --yes --format bundle --output "$RESULTS/session.jsonl" >/dev/null || status=1
fi
echo "outcome=$(member outcome <"$RESULTS/result.json")" >>"${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
