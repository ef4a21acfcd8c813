import { execFile } from 'node:child_process'
import { copyFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build, type InlineConfig } from 'vite'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { dryRun } from '../../scripts/release/dry-run.ts'
import { installTools, toolFolder } from '../../scripts/release/lint-packages.ts'
import { npm, packPackages, type PackedPackage } from '../../scripts/release/packages.ts'
import { tryOtherVersions } from './packages/other-versions.ts'

export const name = 'packages'
export const claim =
  '`npx tapetree tour` starts within 30 s on a new machine; the libraries work with any zod 4 and in bundles.'
export const sizes = { ci: { otherVersions: 0 }, full: { otherVersions: Infinity } }

/** The oldest version of zod whose schemas must work. Ours come from a newer copy that npm installs beside it. */
const oldestZod = '4.0.0'
const programs = ['supervisor', 'html-worker', 'network-keeper-process', 'extension-worker']

/**
 * Packs our packages, publishes them to a registry on loopback and uses them as their users do: by `npx`, as libraries with the oldest
 * zod 4, and in bundles. At full size also with Next.js, with the newest Node, and with the oldest and newest versions of our peers.
 */
export async function run({ say, size, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const folder = await temporaryFolder()
  const [tarballs, consumer] = [join(folder, 'tarballs'), join(folder, 'consumer')]
  for (const each of [tarballs, consumer]) await mkdir(each)
  const packed = await packPackages(tarballs)
  const trial = await dryRun(packed, { folder, say })
  const problems = [...trial.problems]
  const attempt = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    const begun = performance.now()
    const problem = await act().then(
      () => undefined,
      (error: { message: string; stdout?: string }) => `${what} failed: ${error.message}\n${error.stdout ?? ''}`,
    )
    say(`${((performance.now() - begun) / 1000).toFixed(1)} s: ${what}: ${problem === undefined ? 'fine' : 'FAILED'}`)
    if (problem !== undefined) problems.push(problem)
  }
  await installConsumer(consumer, packed)
  await attempt(`the program compiles with zod ${oldestZod}, declarations included`, () => compile(consumer))
  await attempt(`the program runs with zod ${oldestZod}`, () => runNode(consumer, 'program.ts'))
  await attempt('esbuild bundles the program, and the bundle runs', () => bundleWithEsbuild(consumer))
  await attempt('Vite bundles the program, and the bundle runs', () => bundleWithVite(consumer))
  await attempt('esbuild and Vite bundle the client for a browser', () => bundlePage(consumer))
  if (sizes[size].otherVersions > 0)
    await tryOtherVersions({ consumer, folder: join(folder, 'others'), attempt, compile })
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return {
    ok: problems.length === 0,
    figures: {
      firstLineSeconds: trial.firstLineSeconds,
      packagesOfCommand: trial.packages,
      installScripts: trial.installScripts,
      ...Object.fromEntries(packed.map(({ manifest, bytes }) => [`${manifest.name} KB`, Math.round(bytes / 1000)])),
      problems: problems.length,
    },
  }
}

/** Installs the libraries and nothing optional: no provider, no keyring. */
async function installConsumer(folder: string, packed: readonly PackedPackage[]): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
  await copyFile(new URL('packages/program.ts', import.meta.url), join(folder, 'program.ts'))
  await copyFile(new URL('packages/page.ts', import.meta.url), join(folder, 'page.ts'))
  const libraries = packed.filter(({ manifest }) => manifest.bin === undefined).map(({ file }) => file)
  const types = JSON.parse(await readFile('package.json', 'utf8')) as { devDependencies: Record<string, string> }
  const typesNode = `@types/node@${types.devDependencies['@types/node']}`
  const options = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
  await npm(['install', ...options, ...libraries, `zod@${oldestZod}`, typesNode], { cwd: folder })
}

/** Strict, and with the declarations of all packages checked. */
const tsconfig = {
  compilerOptions: {
    target: 'es2025',
    lib: ['es2025', 'esnext.disposable', 'dom'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  },
  include: ['*.ts'],
}

async function compile(folder: string): Promise<void> {
  await execute(process.execPath, [resolve('node_modules/typescript/bin/tsc'), '-p', '.'], { cwd: folder })
}

async function runNode(folder: string, program: string): Promise<void> {
  const { stdout } = await execute(process.execPath, [program], { cwd: folder, timeout: 60_000 })
  if (stdout !== 'everything works\n') throw new Error(`It printed ${stdout}`)
}

/** Packages in CommonJS call `require`, which a module does not have. */
const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

async function bundleWithEsbuild(folder: string): Promise<void> {
  const entries = programs.map((each) => `${each}=@tapetree/agent/programs/${each}`)
  const options = ['--bundle', '--platform=node', '--format=esm', '--outdir=esbuild', `--banner:js=${banner}`]
  await esbuild(folder, ['program=program.ts', ...entries, ...options, '--external:@vscode/ripgrep'])
  await runBundle(folder, 'esbuild')
}

async function bundleWithVite(folder: string): Promise<void> {
  const entries = programs.map((each) => [each, `@tapetree/agent/programs/${each}`])
  await vite(folder, {
    ssr: { noExternal: true, external: ['@vscode/ripgrep'] },
    build: {
      ssr: true,
      outDir: 'vite',
      rolldownOptions: {
        input: { program: 'program.ts', ...Object.fromEntries(entries) },
        output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
      },
    },
  })
  await runBundle(folder, 'vite')
}

/** Where nothing else is installed but ripgrep, which is a binary. */
async function runBundle(folder: string, bundle: string): Promise<void> {
  const target = join(folder, '..', `deployed-${bundle}`)
  await cp(join(folder, bundle), target, { recursive: true })
  await cp(join(folder, 'node_modules/@vscode'), join(target, 'node_modules/@vscode'), { recursive: true })
  await writeFile(join(target, 'package.json'), '{ "private": true, "type": "module" }\n')
  await runNode(target, 'program.js')
}

async function bundlePage(folder: string): Promise<void> {
  await esbuild(folder, ['page.ts', '--bundle', '--platform=browser', '--format=esm', '--outdir=page-esbuild'])
  await writeFile(join(folder, 'index.html'), '<!doctype html><script type="module" src="page.ts"></script>')
  await vite(folder, { build: { outDir: 'page-vite' } })
}

async function esbuild(folder: string, args: readonly string[]): Promise<void> {
  await installTools()
  const program = join(toolFolder, `node_modules/@esbuild/${process.platform}-${process.arch}/bin/esbuild`)
  await execute(program, [...args, '--log-level=warning'], { cwd: folder })
}

async function vite(folder: string, config: InlineConfig): Promise<void> {
  await build({ root: folder, configFile: false, logLevel: 'error', ...config })
}

const execute = promisify(execFile)
