import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The published packages by folder; each comes after the packages that it depends on. */
export const packageFolders = ['session', 'redact', 'client', 'agent', 'server', 'cli', 'tapetree'] as const

/** The part of a `package.json` that a release checks and a registry serves. */
export interface Manifest {
  name: string
  version: string
  type?: string
  license?: string
  description?: string
  keywords?: string[]
  homepage?: string
  bugs?: string
  repository?: { type: string; url: string; directory?: string }
  publishConfig?: { access?: string; provenance?: boolean }
  scripts?: Record<string, string>
  exports?: unknown
  bin?: Record<string, string>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

export interface PackedPackage {
  manifest: Manifest
  file: string
  bytes: number
  unpackedBytes: number
  /** Paths inside the package. */
  files: string[]
  integrity: string
}

/** Packs the packages into a folder, exactly as `npm publish` would: their `prepack` scripts build what is missing. */
export async function packPackages(
  destination: string,
  folders: readonly string[] = packageFolders,
): Promise<PackedPackage[]> {
  const workspaces = folders.flatMap((folder) => ['-w', `packages/${folder}`])
  const printed = await npm(['pack', '--json', '--silent', '--pack-destination', destination, ...workspaces])
  const reports = JSON.parse(printed) as PackReport[]
  return Promise.all(
    folders.map(async (folder) => {
      const manifest = await readManifest(folder)
      const report = reports.find(({ name }) => name === manifest.name)
      if (report === undefined) throw new Error(`npm pack did not report ${manifest.name}.`)
      return {
        manifest,
        file: join(destination, report.filename),
        bytes: report.size,
        unpackedBytes: report.unpackedSize,
        files: report.files.map(({ path }) => path),
        integrity: report.integrity,
      }
    }),
  )
}

interface PackReport {
  name: string
  filename: string
  size: number
  unpackedSize: number
  integrity: string
  files: { path: string }[]
}

export async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(`packages/${folder}/package.json`, 'utf8')) as Manifest
}

export interface NpmOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  program?: 'npm' | 'npx'
}

/** Runs npm without the configuration that `npm run` sets for this repository. Gives its output. */
export async function npm(
  args: readonly string[],
  { cwd = process.cwd(), env = npmEnvironment(), program = 'npm' }: NpmOptions = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { cwd, env, timeout: 300_000, maxBuffer: 64 * 2 ** 20 })
  return stdout
}

/** The environment without the variables that npm sets for the scripts that it runs. */
export function npmEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm_|INIT_CWD)/i.test(name)))
}
