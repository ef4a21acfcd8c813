import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadResources } from '../resources/load-resources.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { configFolder } from './config-files.ts'
import { inspectProject } from './inspect-project.ts'
import { loadSettings } from './layers.ts'
import { findProjectRoot } from './project.ts'
import { buildHostile, hostileRepositories } from './testing/hostile-repositories.ts'
import { TrustStore } from './trust-store.ts'
import { settleTrust } from './trust.ts'

describe('an untrusted hostile repository has no effect', () => {
  test.each(hostileRepositories.map((repository) => [repository.name, repository] as const))(
    '%s',
    async (_, repository) => {
      await using folder = await TestFolder.make({ 'home/.profile': '' })
      const place = {
        root: folder.at('repository'),
        outside: folder.at('outside'),
        canary: folder.at('canary'),
        endpoint: 'http://127.0.0.1:9/',
      }
      await buildHostile(repository, place)
      const before = await statesBelow(place.root)
      const user = { home: folder.at('home'), env: {}, cwd: place.root }

      const root = await findProjectRoot(place.root)
      const project = await inspectProject(root)
      const trust = await settleTrust(project, new TrustStore(configFolder(user)))
      const loaded = await loadSettings({ ...user, trust })
      const resources = await loadResources({
        ...user,
        configFolder: configFolder(user),
        repositoryRoot: root,
        isTrusted: trust.state === 'trusted',
      })

      expect(['untrusted', 'nothing-to-trust']).toContain(trust.state)
      expect(loaded).toEqual(await loadSettings(user))
      expect(loaded.problems).toEqual([])
      expect(resources).toEqual({ skills: [], templates: [], instructions: [], problems: [] })
      expect(project.summary.filter((line) => /[^\P{C}]|[\p{Zl}\p{Zp}]/u.test(line))).toEqual([])
      expect(await statesBelow(place.root)).toEqual(before)
      await expect(lstat(place.canary)).rejects.toMatchObject({ code: 'ENOENT' })
      expect(await readdir(folder.at('home'))).toEqual(['.profile'])
    },
  )
})

/** Every file with the properties that a write would change. */
async function statesBelow(path: string): Promise<string[]> {
  const { mode, size, mtimeMs, ino } = await lstat(path)
  const own = [path, mode, size, mtimeMs, ino].join(' ')
  if ((mode & 0o170000) !== 0o040000) return [own]
  const names = await readdir(path)
  return [own, ...(await Promise.all(names.map((name) => statesBelow(join(path, name)).catch(() => [name])))).flat()]
}
