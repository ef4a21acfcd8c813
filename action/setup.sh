#!/usr/bin/env bash
# Installs what the action needs and the runner lacks: tapetree and bubblewrap.
set -euo pipefail

if ! command -v tapetree >/dev/null; then
  npm install --global "tapetree@$VERSION"
fi
if ! command -v bwrap >/dev/null; then
  sudo apt-get update -qq
  sudo apt-get install -qq --yes bubblewrap
fi
# Ubuntu lets a program create user namespaces only if a profile says so. `tapetree doctor` prints the same profile.
setting="${KERNEL_SETTINGS:-/proc/sys}/kernel/apparmor_restrict_unprivileged_userns"
if [ "$(cat "$setting" 2>/dev/null)" = 1 ]; then
  sudo tee /etc/apparmor.d/bwrap >/dev/null <<PROFILE
abi <abi/4.0>,
include <tunables/global>
profile bwrap $(command -v bwrap) flags=(unconfined) {
  userns,
  include if exists <local/bwrap>
}
PROFILE
  sudo apparmor_parser --replace /etc/apparmor.d/bwrap
fi
