import { mkdir, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxPolicy } from './sandbox-policy.ts'

export interface HomeOptions {
  home: string
  /** A folder for what commands write to the home folder. */
  keep: string
  /** Of bubblewrap. */
  version: string
}

/**
 * The home folder that a command sees. With bubblewrap 0.11 it can write where programs keep their state, and what it writes is kept in
 * `keep`; folders that the user works with stay read-only, because a program must not believe that it has changed them. Older versions have no
 * overlays: nothing is returned, and the home folder is read-only with private caches.
 */
export async function homeMounts({ home, keep, version }: HomeOptions): Promise<Partial<SandboxPolicy>> {
  if (!hasOverlays(version)) return {}
  const real = await realpath(home)
  const [upper, work] = [join(keep, 'home-written'), join(keep, 'home-work')]
  for (const folder of [upper, work]) await mkdir(folder, { recursive: true, mode: 0o700 })
  const entries = await readdir(real, { withFileTypes: true })
  const visible = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  return {
    caches: [],
    overlay: [
      ...['--overlay-src', real, '--overlay', upper, work, real],
      ...visible.map(({ name }) => join(real, name)).flatMap((path) => ['--ro-bind', path, path]),
    ],
  }
}

export function hasOverlays(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 0 || minor >= 11
}
