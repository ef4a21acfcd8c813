import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startLocalRegistry } from './local-registry.ts'
import { manifestProblems, packageProblems } from './manifest-problems.ts'
import { packageFolders, readManifest, type PackedPackage } from './packages.ts'
import { changesOf, datedChangelog, deployed, withImageVersion, withVersion } from './set-version.ts'

test('every package can be published: public, with provenance, metadata and ranges instead of pins', async () => {
  for (const folder of packageFolders) expect(manifestProblems(await readManifest(folder)), folder).toEqual([])
})

test('every package builds itself before it is packed, except the one that is only a link to the command', async () => {
  for (const folder of packageFolders.filter((each) => each !== 'tapetree'))
    expect((await readManifest(folder)).scripts, folder).toEqual({ prepack: 'node ../../scripts/prepack.ts' })
})

test('the README of every package has an example and links that also work outside the repository', async () => {
  for (const folder of packageFolders) {
    const readme = await readFile(`packages/${folder}/README.md`, 'utf8')
    expect(readme, folder).toMatch(/^```(?:ts|text)/m)
    expect(readme.match(/\]\((?!https:|#)[^)]*\)/g), folder).toBeNull()
    expect(await readFile(`packages/${folder}/LICENSE`, 'utf8'), folder).toBe(await readFile('LICENSE', 'utf8'))
  }
})

test('the files for deploying name the version of the packages, and get a new one with them', async () => {
  const { version: before } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
  for (const file of deployed) {
    const text = await readFile(file, 'utf8')
    const next = withImageVersion(text, { before, version: '12.3.4' })
    const named = (each: string): number => each.match(/tapetree(?:\/cli@|:|-migrate-)\d/g)?.length ?? 0
    expect(named(next), file).toBeGreaterThan(0)
    expect(next.match(/tapetree(?:\/cli@|:|-migrate-)12[-.]3[-.]4/g)?.length, file).toBe(named(text))
  }
})

test('an incomplete package is reported with everything that it lacks', () => {
  const incomplete = packed({
    manifest: {
      name: '@tapetree/example',
      version: '0.1.0',
      scripts: { postinstall: 'node install.js' },
      dependencies: { zod: '4.6.7' },
      exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
    },
    files: ['dist/index.js', 'dist/testing/helper.js', 'src/index.test.ts'],
  })
  expect(packageProblems([incomplete])).toEqual([
    '@tapetree/example has no description.',
    '@tapetree/example has no keywords.',
    '@tapetree/example has no homepage.',
    '@tapetree/example has no bugs.',
    '@tapetree/example has no license.',
    '@tapetree/example does not name the repository.',
    '@tapetree/example would not be public.',
    '@tapetree/example would be published without provenance.',
    '@tapetree/example has a postinstall script.',
    '@tapetree/example pins zod to 4.6.7.',
    '@tapetree/example does not ship LICENSE.',
    '@tapetree/example does not ship README.md.',
    '@tapetree/example does not ship dist/index.d.ts.',
    '@tapetree/example ships dist/testing/helper.js, which is only for our tests.',
    '@tapetree/example ships src/index.test.ts, which is only for our tests.',
  ])
})

test('a program depends on exact versions, and all packages have one version', () => {
  const program = packed({
    manifest: {
      name: 'tapetree',
      version: '0.2.0',
      bin: { tapetree: 'bin/tapetree.js' },
      dependencies: { a: '^1.0.0' },
    },
  })
  const problems = packageProblems([program, packed({ manifest: { name: '@tapetree/cli', version: '0.1.0' } })])
  expect(problems).toContain('The packages have different versions: 0.2.0, 0.1.0.')
  expect(problems).toContain('tapetree depends on a ^1.0.0, not on an exact version.')
})

test('a new version reaches all dependencies on our own packages and no others', () => {
  const text = JSON.stringify({
    name: '@tapetree/server',
    version: '0.1.0',
    dependencies: { '@tapetree/agent': '^0.1.0', hono: '^4.13.17' },
    devDependencies: { '@tapetree/session': '0.1.0' },
  })
  expect(JSON.parse(withVersion(text, '0.2.0'))).toEqual({
    name: '@tapetree/server',
    version: '0.2.0',
    dependencies: { '@tapetree/agent': '^0.2.0', hono: '^4.13.17' },
    devDependencies: { '@tapetree/session': '0.2.0' },
  })
})

test('a release dates the unreleased changes and leaves an empty section for the next ones', () => {
  const changelog = '# Changelog\n\n## Unreleased\n\n- A change.\n\n## 0.1.0 (2026-11-16)\n\n- The first.\n'
  expect(datedChangelog(changelog, { version: '0.2.0', date: '2026-12-01' })).toBe(
    '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n- A change.\n\n## 0.1.0 (2026-11-16)\n\n- The first.\n',
  )
  const empty = '# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-11-16)\n\n- The first.\n'
  expect(datedChangelog(empty, { version: '0.2.0', date: '2026-12-01' })).toBeUndefined()
})

test('the notes of a release are its section of the changelog', () => {
  const changelog =
    '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n- A change.\n\n## 0.1.0 (2026-11-16)\n\n- The first.\n'
  expect(changesOf(changelog, '0.2.0')).toBe('- A change.')
  expect(changesOf(changelog, '0.1.0')).toBe('- The first.')
  expect(changesOf(changelog, '0.3.0')).toBeUndefined()
})

test('the local registry serves our packages and redirects all other requests to the configured registry', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-registry-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'tapetree-example-0.1.0.tgz')
  await writeFile(file, 'the tarball')
  const example = packed({ manifest: { name: '@tapetree/example', version: '0.1.0' }, file })
  await using registry = await startLocalRegistry([example])
  // npm escapes the slash of a scope.
  const answer = await fetch(`${registry.url}/@tapetree%2fexample`)
  const { versions } = (await answer.json()) as { versions: Record<string, { dist: { tarball: string } }> }
  const { tarball = '' } = versions['0.1.0']?.dist ?? {}
  expect(await (await fetch(tarball)).text()).toBe('the tarball')
  const other = await fetch(`${registry.url}/@scope%2fother`, { redirect: 'manual' })
  expect(other.status).toBe(302)
  expect(other.headers.get('location')).toMatch(/^https?:.*\/@scope%2fother$/)
})

function packed(given: Partial<PackedPackage> & Pick<PackedPackage, 'manifest'>): PackedPackage {
  return { file: 'none.tgz', bytes: 0, unpackedBytes: 0, files: [], integrity: 'sha512-none', ...given }
}
