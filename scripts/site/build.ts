import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, posix, relative } from 'node:path'
import { missingExports } from './missing-exports.ts'

/** What `buildSite` writes. */
export const siteFolder = 'docs/.vitepress/dist'

/** Modules that users import, as TypeDoc reads them: one file for each entry of a package. */
const entriesFolder = 'docs/.api-entries'
const apiFolder = 'docs/api'
/** Entries for our own packages and child processes. */
const internalEntry = /^\.\/(?:util|programs)\//
const documentedPackages = ['session', 'agent', 'server', 'client', 'redact']

/** The API reference by TypeDoc, then the site by VitePress, whose config writes `llms.txt`. Both come from docs/package-lock.json. */
export async function buildSite({ say }: { say: (line: string) => void }): Promise<void> {
  await installTools(say)
  await rm(apiFolder, { recursive: true, force: true })
  await rm(siteFolder, { recursive: true, force: true })
  const entries = await writeEntries()
  const json = '.api-entries/api.json'
  await timed('TypeDoc', say, () =>
    run('typedoc/bin/typedoc', ['--out', 'api', '--json', json, '--entryPoints', ...entries]),
  )
  const missing = missingExports(JSON.parse(await readFile(join('docs', json), 'utf8')))
  if (missing.length > 0)
    throw new Error(`Export these types, or do not use them in exported ones:\n${missing.join('\n')}`)
  await rm(entriesFolder, { recursive: true, force: true })
  await timed('VitePress', say, () => run('vitepress/bin/vitepress.js', ['build']))
}

async function installTools(say: (line: string) => void): Promise<void> {
  const installed = 'docs/node_modules/.package-lock.json'
  if (existsSync(installed)) {
    const [lock, tree] = await Promise.all(['docs/package-lock.json', installed].map((file) => stat(file)))
    if (lock && tree && lock.mtimeMs <= tree.mtimeMs) return
  }
  await timed('npm ci', say, async () => {
    const child = spawn('npm', ['ci', '--prefix', 'docs', '--strict-allow-scripts'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`npm ci in docs ended with exit code ${code}`)
  })
}

/** Each module is named after what users import. */
async function writeEntries(): Promise<string[]> {
  const entries: string[] = []
  for (const name of documentedPackages) {
    const manifest = JSON.parse(await readFile(`packages/${name}/package.json`, 'utf8')) as {
      exports: Record<string, Record<string, string>>
    }
    for (const [entry, conditions] of Object.entries(manifest.exports)) {
      const source = conditions['@tapetree/source']
      if (source === undefined || internalEntry.test(entry)) continue
      const file = join(entriesFolder, '@tapetree', name, entry === '.' ? 'index.ts' : `${entry}.ts`)
      await mkdir(dirname(file), { recursive: true })
      const target = relative(dirname(file), join('packages', name, source)).replaceAll('\\', '/')
      const imported = posix.join('@tapetree', name, entry)
      await writeFile(file, `/** @module ${imported} */\nexport * from '${target}'\n`)
      entries.push(relative('docs', file))
    }
  }
  return entries
}

/** A program of docs/node_modules, in docs. Its output is shown if it fails. */
async function run(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [join('node_modules', program), ...args], {
    cwd: 'docs',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${program} ended with exit code ${code}:\n${output}`)
}

async function timed(what: string, say: (line: string) => void, work: () => Promise<void>): Promise<void> {
  const start = performance.now()
  await work()
  say(`${what}: ${((performance.now() - start) / 1000).toFixed(1)} s`)
}
