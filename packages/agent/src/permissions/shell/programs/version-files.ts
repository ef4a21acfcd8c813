import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readPlainFile } from '../words/plain-file.ts'

/**
 * Why programs must not run in a folder without a request, if there is a reason. Version managers (asdf, mise, rustup
 * and others) put shims on the path under the names of ordinary programs. A shim reads files in the folder and above
 * it, and some of these can name a program of the repository, or one to build or download. A plain version is harmless:
 * it selects an installed version.
 */
export function versionFileProblem(folder: string, home: string): string | undefined {
  for (let current = folder; ; current = dirname(current)) {
    if (current !== home) {
      const found = [...versionFiles].find(([name, isPlain]) => !isHarmless(join(current, name), isPlain))
      if (found) return `${join(current, found[0])} may make a version manager run something else`
    }
    if (dirname(current) === current) return undefined
  }
}

function isHarmless(file: string, isPlain: RegExp): boolean {
  if (!existsSync(file)) return true
  const text = readPlainFile(file, { maxBytes: 64 * 1024 })?.toString('utf8')
  return text !== undefined && text.split(/\r?\n/).every((line) => /^\s*(?:#.*)?$/.test(line) || isPlain.test(line))
}

/** `nodejs 22.1.0 20.9.0`, without `path:`, `ref:` or a tool such as `npm:x`. */
const toolVersions = /^\s*[A-Za-z0-9_-]+(?:\s+[A-Za-z0-9_.+-]+)*\s*(?:#.*)?$/
const version = /^\s*[A-Za-z0-9_.+*-]+(?:\/[A-Za-z0-9_.*-]+)?\s*$/
/** A channel, components, targets and a profile, but no `path`. */
const toolchain =
  /^\s*(?:\[toolchain\]|[A-Za-z0-9_.-]+|(?:channel|components|targets|profile)\s*=.*|["'A-Za-z0-9_., -]*\]?)\s*$/
/** Sections and versions of tools; hooks, tasks and variables may run something. */
const mise = /^\s*(?:\[tools\]|[A-Za-z0-9_-]+\s*=\s*(["'])[A-Za-z0-9_.+-]+\1)\s*$/

/** The files, with the pattern of a harmless line. */
const versionFiles = new Map([
  ['.tool-versions', toolVersions],
  ['mise.toml', mise],
  ['.mise.toml', mise],
  ['mise.local.toml', mise],
  ['.config/mise.toml', mise],
  ['.config/mise/config.toml', mise],
  ['.mise/config.toml', mise],
  ['rust-toolchain', toolchain],
  ['rust-toolchain.toml', toolchain],
  ['.node-version', version],
  ['.nvmrc', version],
  ['.python-version', version],
  ['.ruby-version', version],
])
