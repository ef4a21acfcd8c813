// Bundles the command: packages/cli/src/main.ts and all that it imports into packages/cli/dist/bin, and its man page into dist/man.
import { execFile } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'rolldown'
import { buildWeb, webAppFolder } from './build-web.ts'
import { licencesOf } from './build-cli/licences.ts'
import { lateUnicode } from './build-cli/late-unicode.ts'
import { withMarkdownInside } from './build-cli/markdown-inside.ts'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'packages/cli/dist')
const agent = join(root, 'packages/agent/src')

/** The programs and threads of the agent. They are found beside the file that starts them, so everything lies in one folder. */
export const agentPrograms = {
  supervisor: join(agent, 'tools/commands/supervisor.ts'),
  'html-worker': join(agent, 'tools/web/html-worker.ts'),
  'network-keeper-process': join(agent, 'sandbox/network-keeper-process.ts'),
  'extension-worker': join(agent, 'extensions/extension-worker.ts'),
}

const entries = {
  ...agentPrograms,
  tapetree: join(root, 'packages/cli/src/main.ts'),
  'tour-process': join(root, 'packages/cli/src/tour/tour-process.ts'),
}

/** These have machine code in packages of their own, one for each platform. */
export const native = ['@napi-rs/keyring', '@vscode/ripgrep', 'fs-native-extensions']

/** Does nothing where no source is newer than the bundle. */
export async function buildCli(): Promise<void> {
  const newest = newestSource()
  if (newest <= builtAt()) return
  await mkdir(dist, { recursive: true })
  // Made aside and put in place whole: somebody may be running the one that is there.
  const made = await mkdtemp(join(dist, 'new-'))
  try {
    await Promise.all([bundle(join(made, 'bin')), buildWeb()])
    // The server looks for the web app beside its own code.
    await cp(webAppFolder, join(made, 'bin/web-app'), { recursive: true })
    await writeManPage(made)
    await writeFile(join(made, 'bin', stamp), String(newest))
    await replace('man', made)
    await replace('bin', made)
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

async function bundle(folder: string): Promise<void> {
  const { output } = await build({
    input: entries,
    platform: 'node',
    external: native,
    // `import` or `require` is added by how a package is loaded: pg requires packages that have both.
    resolve: { conditionNames: ['@tapetree/source', 'node', 'module', 'default'] },
    // The screen's packages do nothing by being imported, and do not say so.
    treeshake: { moduleSideEffects: [{ test: /[\\/](?:pi-tui|marked)[\\/]/, sideEffects: false }] },
    plugins: [markdownInside(), lateUnicode()],
    logLevel: 'warn',
    output: {
      dir: folder,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'chunk-[name].js',
      // What is not shown is not read and not kept in memory; names and lines stay for whoever reports an error.
      comments: { legal: true, annotation: false, jsdoc: false },
      minify: false,
      sourcemap: false,
    },
  })
  await chmod(join(folder, 'tapetree.js'), 0o755)
  const moduleIds = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []))
  await writeFile(join(folder, 'licences.txt'), licencesOf(moduleIds))
  await copyTerminalCode(folder)
}

/** What the agent reads from Markdown files beside its source is put into the bundle. */
export function markdownInside(): Plugin {
  return { name: 'markdown-inside', load: (id) => withMarkdownInside(id) ?? null }
}

/** On macOS and Windows the screen asks the system for what a terminal does not say. It looks for this beside its own code. */
async function copyTerminalCode(folder: string): Promise<void> {
  const native = join(root, 'node_modules/@earendil-works/pi-tui/native')
  for (const file of globSync('{darwin,win32}/prebuilds/**/*-platform.node', { cwd: native }))
    await cp(join(native, file), join(folder, 'native', file))
}

async function writeManPage(folder: string): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'bin/tapetree.js'), 'man'])
  await mkdir(join(folder, 'man'))
  await writeFile(join(folder, 'man/tapetree.1'), stdout)
}

async function replace(name: string, made: string): Promise<void> {
  // The old one goes away together with the folder that the new one was made in.
  await rename(join(dist, name), join(made, `old-${name}`)).catch(() => undefined)
  await rename(join(made, name), join(dist, name))
}

const stamp = '.built-from'

function newestSource(): number {
  const files = globSync(
    [
      'packages/*/src/**/*.{ts,tsx,css,md}',
      'package-lock.json',
      'scripts/build-{cli,web}.ts',
      'scripts/build-cli/*.ts',
    ],
    {
      cwd: root,
      exclude: ['**/*.test.ts'],
    },
  )
  return Math.max(...files.map((file) => statSync(join(root, file)).mtimeMs))
}

function builtAt(): number {
  try {
    return Number(readFileSync(join(dist, 'bin', stamp), 'utf8'))
  } catch {
    return 0 // It was never built.
  }
}

if (process.argv[1] === import.meta.filename) await buildCli()
