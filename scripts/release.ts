// Publishes the packages, or tries to: `npm run release -- --dry-run`. See docs/contributing/release.md.
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { dryRun } from './release/dry-run.ts'
import { npm, packPackages, readManifest, type PackedPackage } from './release/packages.ts'
import { changesOf, setVersion } from './release/set-version.ts'

const usage = `usage: npm run release -- --dry-run               pack, install from a local registry and run the tour
       npm run release -- --set-version <version>  set the version of all packages and date the changelog
       npm run release -- --notes                  print the changes of this version
       npm run release -- --publish                publish what is packed; only the release workflow does that`

async function main(): Promise<string[]> {
  const { values } = parseArgs({
    options: {
      'dry-run': { type: 'boolean' },
      'set-version': { type: 'string' },
      notes: { type: 'boolean' },
      publish: { type: 'boolean' },
    },
  })
  if (values['set-version'] !== undefined) return setVersion(values['set-version'])
  if (values.notes) return printNotes()
  if (!values['dry-run'] && !values.publish) return [usage]
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-release-'))
  try {
    await mkdir(join(folder, 'tarballs'))
    const packed = await packPackages(join(folder, 'tarballs'))
    const { problems } = await dryRun(packed, { folder, say: (line) => console.log(line) })
    return problems.length > 0 || !values.publish ? problems : await publish(packed)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function printNotes(): Promise<string[]> {
  const { version } = await readManifest('tapetree')
  const changes = changesOf(await readFile('CHANGELOG.md', 'utf8'), version)
  if (changes === undefined) return [`CHANGELOG.md has no section for ${version}.`]
  console.log(changes)
  return []
}

/** In the order of their dependencies. A run that stopped halfway can be repeated: published versions are left alone. */
async function publish(packed: readonly PackedPackage[]): Promise<string[]> {
  const version = packed[0]?.manifest.version ?? ''
  const tag = process.env['GITHUB_REF_NAME']
  if (tag !== `v${version}`) return [`The tag is ${tag ?? 'missing'}, but the packages have version ${version}.`]
  for (const { manifest, file } of packed) {
    if (await isPublished(manifest.name, version)) {
      console.log(`${manifest.name} ${version} is already published`)
      continue
    }
    execFileSync('npm', ['publish', file, '--tag', version.includes('-') ? 'next' : 'latest'], { stdio: 'inherit' })
  }
  return []
}

async function isPublished(name: string, version: string): Promise<boolean> {
  return npm(['view', `${name}@${version}`, 'version']).then(
    (printed) => printed.trim() === version,
    () => false,
  )
}

const problems = await main()
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
