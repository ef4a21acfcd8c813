import { chmod, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Places } from '../../host/places.ts'
import { failed, ok, warning, type Check } from './check.ts'

/** Folders of ours are for their owner alone, and so are the files with keys. */
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
  if (found === undefined) return ok(name, `${path} is not there yet. It is made when it is needed.`)
  if (!found.isDirectory()) return failed(name, `${path} is not a folder.`, `Move it away.`)
  const foreign = belongsToOther(found.uid)
  if (foreign) return failed(name, `${path} belongs to another user.`, `Give it to yours, or set TAPETREE_HOME.`)
  if ((found.mode & 0o077) === 0) return ok(name, `${path} is for its owner alone.`)
  return {
    ...warning(name, `Others may look into ${path} (${modeOf(found.mode)}).`, `chmod 700 '${path}'`),
    mend: async () => {
      await chmod(path, 0o700)
      return `${path} is for its owner alone now.`
    },
  }
}

async function checkFile(path: string): Promise<Check> {
  const { mode, uid } = await lstat(path)
  if (belongsToOther(uid)) return failed('private files', `${path} belongs to another user.`, 'Move it away.')
  if ((mode & 0o077) === 0) return ok('private files', `${path} is for its owner alone.`)
  return {
    ...failed('private files', `Others may read ${path} (${modeOf(mode)}), so it is not used.`, `chmod 600 '${path}'`),
    mend: async () => {
      await chmod(path, 0o600)
      return `${path} is for its owner alone now.`
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
