import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { coldStart, newUser, type NewUser } from './cold-start.ts'
import { lintPackages } from './lint-packages.ts'
import { startLocalRegistry } from './local-registry.ts'
import { packageProblems } from './manifest-problems.ts'
import { npm, type PackedPackage } from './packages.ts'

export interface DryRun {
  /** An empty folder for the tarballs, the new home and the installations. */
  folder: string
  say: (line: string) => void
}

export interface DryRunResult {
  problems: string[]
  firstLineSeconds: number
  /** What one installation of `tapetree` consists of, itself included. */
  packages: number
  installScripts: number
}

const maxFirstLineSeconds = 30

/** Lints packed packages, publishes them to a registry on loopback, and installs and uses them from there as a new user. */
export async function dryRun(packed: readonly PackedPackage[], { folder, say }: DryRun): Promise<DryRunResult> {
  for (const { manifest, bytes, unpackedBytes, files } of packed) {
    say(`${manifest.name} ${manifest.version}: ${kb(bytes)} KB packed, ${kb(unpackedBytes)} KB, ${files.length} files`)
  }
  await using registry = await startLocalRegistry(packed)
  const user = await newUser(folder, registry.url)
  const start = await coldStart(user)
  say(`npx tapetree tour: first line after ${start.firstLineSeconds} s, exit code ${start.exitCode}`)
  say(`  ${start.output.trim().split('\n')[0]}`)
  const version = await npm(['--yes', 'tapetree', '--version'], { ...user, program: 'npx' })
  const installed = await installedByNpx(user)
  const scripts = installed.filter(({ hasInstallScript }) => hasInstallScript).map(({ place }) => place)
  say(`npx tapetree installed ${installed.length} packages with ${scripts.length} install scripts`)
  const expected = packed.at(-1)?.manifest.version
  return {
    problems: [
      ...packageProblems(packed),
      ...(await lintPackages(packed)),
      ...(start.firstLineSeconds > maxFirstLineSeconds
        ? [`The first line of the tour took ${start.firstLineSeconds} s, more than ${maxFirstLineSeconds} s.`]
        : []),
      ...(start.exitCode === 0 ? [] : [`The tour failed with exit code ${start.exitCode}: ${start.errors}`]),
      ...(version === `${expected}\n`
        ? []
        : [`The installed command reports version ${version.trim()}, not ${expected}.`]),
      ...scripts.map((place) => `${place} has an install script.`),
    ],
    firstLineSeconds: start.firstLineSeconds,
    packages: installed.length,
    installScripts: scripts.length,
  }
}

async function installedByNpx({ home }: NewUser): Promise<{ place: string; hasInstallScript?: boolean }[]> {
  const [file = ''] = globSync(join(home, '.npm/_npx/*/node_modules/.package-lock.json'))
  const { packages } = JSON.parse(await readFile(file, 'utf8')) as {
    packages: Record<string, { hasInstallScript?: boolean }>
  }
  return Object.entries(packages).map(([place, entry]) => ({ place, ...entry }))
}

function kb(bytes: number): number {
  return Math.round(bytes / 1000)
}
