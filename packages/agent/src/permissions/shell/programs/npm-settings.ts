import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readPlainFile } from '../words/plain-file.ts'

/**
 * What keeps npm from being asked without asking first, if anything does: settings in the folder or above it can tell it to write
 * elsewhere (`cache`, `logs-dir`) or to run something (`node-options`, `script-shell`). The user's own settings are theirs.
 */
export function npmSettingsProblem(folder: string, home: string): string | undefined {
  for (let current = folder; ; current = dirname(current)) {
    const file = join(current, '.npmrc')
    const problem = current === home || !existsSync(file) ? undefined : settingsProblem(file)
    if (problem !== undefined || dirname(current) === current) return problem
  }
}

function settingsProblem(file: string): string | undefined {
  const settings = readPlainFile(file, { maxBytes: 4 * 1024 * 1024 })?.toString('utf8')
  if (settings === undefined) return `${file} cannot be read`
  for (const line of settings.split(/\r?\n/)) {
    if (/^\s*(?:[#;].*)?$/.test(line)) continue
    const key = /^\s*([^=\s[\]"']+)\s*(?:=|$)/.exec(line)?.[1]
    if (key === undefined || !isHarmless(key)) return `${file} has the line \`${line.trim()}\`, which cannot be judged`
  }
  return undefined
}

/** Where packages come from, and how they are laid out: nothing that reading what is installed cares for. */
function isHarmless(key: string): boolean {
  return harmless.has(key) || /^(?:@[^:]+:registry|\/\/.*:[_a-zA-Z]+)$/.test(key)
}

const harmless = new Set(
  `registry save-exact save-prefix engine-strict package-lock fund audit audit-level legacy-peer-deps strict-peer-deps
  strict-peer-dependencies auto-install-peers loglevel progress color ignore-scripts strict-allow-scripts always-auth
  omit-lockfile-registry-resolved lockfile-version install-strategy prefer-offline prefer-dedupe update-notifier shamefully-hoist
  public-hoist-pattern[] node-linker hoist link-workspace-packages resolution-mode tag-version-prefix workspaces-update`.split(
    /\s+/,
  ),
)
