import { execFile } from 'node:child_process'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { npm, packPackages } from '../../scripts/release/packages.ts'
import { brokenImports } from './install-size/broken-imports.ts'
import { installedPackages, type InstalledPackage } from './install-size/installed-packages.ts'

export const name = 'install-size'
export const claim = 'The agent with one provider installs at most 60 packages and 50 MB.'

const limits = { packages: 60, megabytes: 50 }
const provider = '@ai-sdk/anthropic'
const ours = ['session', 'redact', 'agent']
/** What must come only when somebody asks for it. */
const optional = /^(?:@ai-sdk\/|@napi-rs\/|@modelcontextprotocol\/server$)/

/**
 * Packs our packages as they would be published, installs them into an empty folder, first without a provider, then with one, and
 * works with what is there: it must be small, complete, and nothing that nobody asked for.
 */
export async function run({ say, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const folder = await temporaryFolder()
  const problems: string[] = []
  const archives = (await packPackages(folder, ours)).map(({ file }) => file)
  const home = join(folder, 'home')
  await mkdir(home)
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  await copyFile(fileURLToPath(new URL('install-size/first-use.ts', import.meta.url)), join(folder, 'first-use.ts'))

  await install(folder, archives)
  const bare = await installedPackages(folder)
  for (const { name: unasked } of bare.filter((each) => optional.test(each.name)))
    problems.push(`${unasked} came along`)
  problems.push(...(await firstUse(folder, ['without-provider', home])))

  const version = await providerVersion()
  await install(folder, [`${provider}@${version}`])
  const packages = await installedPackages(folder)
  for (const { name: unasked } of packages.filter((each) => optional.test(each.name))) {
    if (!/^@ai-sdk\/(?:anthropic|provider|provider-utils)$/.test(unasked)) problems.push(`${unasked} came along`)
  }
  problems.push(...(await firstUse(folder, ['with-provider', home])))
  for (const each of ours) problems.push(...(await brokenImports(join(folder, 'node_modules/@tapetree', each))))

  const whole = sizeOf(packages)
  describe('without a provider', bare, say)
  describe(`with ${provider}`, packages, say)
  for (const { name: large, bytes } of packages.slice(0, 5)) say(`  ${megabytes(bytes)} MB ${large}`)
  if (packages.length > limits.packages) problems.push(`there are more than ${limits.packages} packages`)
  if (whole.bytes > limits.megabytes * 1e6) problems.push(`there are more than ${limits.megabytes} MB`)
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return {
    ok: problems.length === 0,
    figures: {
      packages: packages.length,
      megabytes: megabytes(whole.bytes),
      megabytesInBlocks: megabytes(whole.blockBytes),
      packagesWithoutProvider: bare.length,
      megabytesWithoutProvider: megabytes(sizeOf(bare).bytes),
      problems: problems.length,
    },
  }
}

/** The version that the repository is tested with, out of the range of the peer dependency. */
async function providerVersion(): Promise<string> {
  const { devDependencies } = JSON.parse(await readFile('packages/agent/package.json', 'utf8')) as {
    devDependencies: Record<string, string>
  }
  return devDependencies[provider] ?? 'latest'
}

async function install(folder: string, wanted: readonly string[]): Promise<void> {
  await npm(['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', ...wanted], { cwd: folder })
}

async function firstUse(folder: string, args: readonly string[]): Promise<string[]> {
  const env = { PATH: process.env['PATH'] }
  return runProgram(process.execPath, ['first-use.ts', ...args], folder, env).then(
    () => [],
    (error: unknown) => [`${args[0]}: ${error instanceof Error ? error.message : String(error)}`],
  )
}

async function runProgram(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { cwd, env, timeout: 120_000 })
  return stdout
}

function describe(what: string, packages: readonly InstalledPackage[], say: (line: string) => void): void {
  const { bytes, blockBytes } = sizeOf(packages)
  say(`${what}: ${packages.length} packages, ${megabytes(bytes)} MB, ${megabytes(blockBytes)} MB in blocks of the disk`)
}

function sizeOf(packages: readonly InstalledPackage[]): { bytes: number; blockBytes: number } {
  const sum = (count: (each: InstalledPackage) => number): number =>
    packages.reduce((total, each) => total + count(each), 0)
  return { bytes: sum(({ bytes }) => bytes), blockBytes: sum(({ blockBytes }) => blockBytes) }
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1e5) / 10
}
