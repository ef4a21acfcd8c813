import { readFile, writeFile } from 'node:fs/promises'
import { npm, packageFolders } from './packages.ts'

export const deployed = ['deploy/Containerfile', 'deploy/cluster/compose.yaml', 'deploy/cluster/kubernetes.yaml']
const ours = /^(?:tapetree|@tapetree\/.+)$/

/** Gives all packages one version, and the unreleased part of the changelog a heading with the version and the date. */
export async function setVersion(version: string): Promise<string[]> {
  if (!/^\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?$/.test(version))
    return [`${version} is not a version such as 0.2.0 or 0.2.0-beta.1.`]
  const changelog = await readFile('CHANGELOG.md', 'utf8')
  const dated = datedChangelog(changelog, { version, date: new Date().toISOString().slice(0, 10) })
  if (dated === undefined) return ['CHANGELOG.md has nothing under “Unreleased”.']
  const { version: before } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
  for (const file of [
    'package.json',
    'tests/package.json',
    'packages/web/package.json',
    ...packageFolders.map((each) => `packages/${each}/package.json`),
  ])
    await writeFile(file, withVersion(await readFile(file, 'utf8'), version))
  for (const file of deployed)
    await writeFile(file, withImageVersion(await readFile(file, 'utf8'), { before, version }))
  await writeFile('CHANGELOG.md', dated)
  await npm(['install', '--package-lock-only', '--ignore-scripts'])
  return []
}

/** The text of a file that names the version of our package or image, or of a job that has it in its name. */
export function withImageVersion(text: string, { before, version }: { before: string; version: string }): string {
  const dashed = (each: string): string => each.replaceAll(/[^a-z0-9]/g, '-')
  return text
    .replaceAll(`@tapetree/cli@${before}`, `@tapetree/cli@${version}`)
    .replaceAll(`tapetree:${before}`, `tapetree:${version}`)
    .replaceAll(`tapetree-migrate-${dashed(before)}`, `tapetree-migrate-${dashed(version)}`)
}

/** The text of a manifest with a new version, also in its dependencies on our other packages: `^` stays `^`. */
export function withVersion(text: string, version: string): string {
  const manifest = JSON.parse(text) as Record<string, unknown>
  manifest['version'] = version
  for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']) {
    const dependencies = manifest[kind] as Record<string, string> | undefined
    for (const [name, range] of Object.entries(dependencies ?? {}))
      if (dependencies && ours.test(name)) dependencies[name] = range.startsWith('^') ? `^${version}` : version
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/** Undefined if nothing is unreleased. A new, empty part for unreleased changes stays on top. */
export function datedChangelog(text: string, { version, date }: { version: string; date: string }): string | undefined {
  const heading = '## Unreleased\n'
  const start = text.indexOf(heading)
  if (start === -1) return undefined
  const rest = text.slice(start + heading.length)
  const unreleased = rest.slice(0, rest.search(/^## /m) === -1 ? undefined : rest.search(/^## /m))
  if (unreleased.trim() === '') return undefined
  return `${text.slice(0, start)}${heading}\n## ${version} (${date})\n${rest}`
}

/** The part of the changelog about one version, without its heading. */
export function changesOf(text: string, version: string): string | undefined {
  const heading = new RegExp(`^## ${RegExp.escape(version)} .*\\n`, 'm').exec(text)
  if (heading === null) return undefined
  const [changes = ''] = text.slice(heading.index + heading[0].length).split(/^## /m)
  return changes.trim()
}
