// npm leaves a platform's package out of the lock when it could not see it; machines of that platform would then
// install a tool without its binary. Every optional dependency must therefore have an entry.
import { globSync, readFileSync } from 'node:fs'

interface LockEntry {
  optionalDependencies?: Record<string, string>
  hasInstallScript?: boolean
}

interface Manifest {
  /** npm does not run the install script of a package whose value is false. */
  allowScripts?: Record<string, boolean>
}

function checkLock(path: string): string[] {
  const { packages } = JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, LockEntry> }
  const manifest = JSON.parse(readFileSync(path.replace('-lock', ''), 'utf8')) as Manifest
  const problems: string[] = []
  for (const [place, entry] of Object.entries(packages)) {
    const isDenied = manifest.allowScripts?.[place.replace(/^.*node_modules\//, '')] === false
    if (entry.hasInstallScript && !isDenied) problems.push(`${path}: ${place} has an install script`)
    for (const name of Object.keys(entry.optionalDependencies ?? {})) {
      if (!lookup(place, name, packages))
        problems.push(`${path}: ${place || 'the root'} wants ${name}, not in the lock`)
    }
  }
  return problems
}

/** Climbs the folders as Node does: from the package's own node_modules up to the root's. */
function lookup(place: string, name: string, packages: Record<string, LockEntry>): boolean {
  const parts = place.split('/')
  for (let depth = parts.length; depth >= 0; depth -= 1) {
    if (parts[depth - 1] === 'node_modules') continue
    const folder = parts.slice(0, depth).filter(Boolean)
    if ([...folder, 'node_modules', name].join('/') in packages) return true
  }
  return false
}

const problems = [
  'package-lock.json',
  'docs/package-lock.json',
  ...globSync('{tools/*,tests/comparison/rivals}/package-lock.json'),
].flatMap(checkLock)
for (const problem of problems) console.error(problem)
console.log(`lockcheck: ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1
