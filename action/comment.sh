#!/usr/bin/env bash
# Comments on the pull request with the answer of the agent. Does nothing on a pull request from another repository.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/event.sh"

number="$(own_pull_request)"
if [ -z "$number" ]; then
  echo 'No comment: this is no pull request of this repository.'
  exit 0
fi
result="$RESULTS/result.json"
if [ -z "$([ -s "$result" ] && member session_id <"$result")" ]; then
  echo 'No comment: the agent did not run.'
  exit 0
fi
{
  echo '### tapetree'
  echo
  member text <"$result" | head -c 60000
  printf '\n\n'
  echo "Outcome: $(member outcome <"$result"), cost: \$$(member cost <"$result"). The session is an artifact of this run."
} >"$RESULTS/comment.md"
gh pr comment "$number" --repo "$GITHUB_REPOSITORY" --body-file "$RESULTS/comment.md"
