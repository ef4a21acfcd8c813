import { chmod, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Places } from '../../host/places.ts'
import { failed, ok, warning, type Check } from './check.ts'

/** Our folders, and the files with keys, must be private to their owner. */
export async function folderChecks({ config, sessions, state, runtime }: Places): Promise<Check[]> {
  const folders = [
    ['settings folder', config],
    ['sessions folder', sessions],
    ['state folder', state],
    ['sockets folder', runtime],
  ] as const
  const checks: Check[] = []
  for (const [name, path] of folders) checks.push(await checkFolder(name, path))
  for (const folder of [config, state, join(state, 'tls')])
    for (const path of await secretFiles(folder)) checks.push(await checkFile(path))
  return checks
}

async function checkFolder(name: string, path: string): Promise<Check> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return ok(name, `${path} does not exist yet. It is created when needed.`)
  if (!found.isDirectory()) return failed(name, `${path} is not a folder.`, `Move it elsewhere.`)
  const foreign = belongsToOther(found.uid)
  if (foreign) return failed(name, `${path} belongs to another user.`, `Change its owner, or set TAPETREE_HOME.`)
  if ((found.mode & 0o077) === 0) return ok(name, `${path} is private.`)
  return {
    ...warning(name, `Other users can access ${path} (${modeOf(found.mode)}).`, `chmod 700 '${path}'`),
    mend: async () => {
      await chmod(path, 0o700)
      return `${path} is private now.`
    },
  }
}

async function checkFile(path: string): Promise<Check> {
  const { mode, uid } = await lstat(path)
  if (belongsToOther(uid)) return failed('private files', `${path} belongs to another user.`, 'Move it elsewhere.')
  if ((mode & 0o077) === 0) return ok('private files', `${path} is private.`)
  return {
    ...failed(
      'private files',
      `Other users can read ${path} (${modeOf(mode)}), so it is not used.`,
      `chmod 600 '${path}'`,
    ),
    mend: async () => {
      await chmod(path, 0o600)
      return `${path} is private now.`
    },
  }
}

/** Keys, tokens and certificates. */
async function secretFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries
    .filter(
      (entry) =>
        entry.isFile() && /^(?:credentials|tokens?|mcp-pins|servers)\b.*\.json$|\.(?:pem|key)$/.test(entry.name),
    )
    .map((entry) => join(folder, entry.name))
}

function belongsToOther(uid: number): boolean {
  const own = process.getuid?.()
  return own !== undefined && own !== uid
}

function modeOf(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0')
}
