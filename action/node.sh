#!/usr/bin/env bash
# Says whether the runner lacks a version of Node that can run tapetree.
set -euo pipefail

isEnough='const [major, minor] = process.versions.node.split("."); process.exit(major > 24 || (major == 24 && minor >= 15) ? 0 : 1)'
if ! command -v node >/dev/null || ! node -e "$isEnough"; then
  echo missing=true >>"$GITHUB_OUTPUT"
fi
