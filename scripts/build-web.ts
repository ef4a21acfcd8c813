// Builds the web app of packages/web into packages/server/web-app, from where the server serves it.
import { execFile } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { chmod, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'vite'

const root = resolve(import.meta.dirname, '..')

export const webAppFolder = join(root, 'packages/server/web-app')

/** Does nothing if no source is newer than the build. */
export async function buildWeb(): Promise<void> {
  const newest = newestSource()
  if (newest <= builtAt()) return
  // Built aside and moved into place as a whole: a server may be serving the previous build.
  const made = await mkdtemp(join(root, 'packages/server/web-app-'))
  try {
    await bundleAlone(made)
    await chmod(made, 0o755)
    await writeFile(join(made, stamp), String(newest))
    const old = `${made}-old`
    await rename(webAppFolder, old).catch(() => undefined)
    await rename(made, webAppFolder)
    await rm(old, { recursive: true, force: true })
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

/** In a process of its own: Vite takes from the environment whether it builds for production, and tests have another one. */
async function bundleAlone(folder: string): Promise<void> {
  const env = { ...process.env, NODE_ENV: 'production' }
  await promisify(execFile)(process.execPath, [import.meta.filename, folder], { env })
}

/** Builds into a folder, whether or not anything changed. Proofs give plugins that break the app. */
export async function bundleWeb(folder: string, plugins: readonly Plugin[] = []): Promise<void> {
  await build({
    plugins: [...plugins],
    root: join(root, 'packages/web'),
    configFile: false,
    logLevel: 'warn',
    // Relative, so that the app works below any path.
    base: './',
    resolve: { conditions: ['@tapetree/source', 'module', 'browser', 'production'] },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'baseline-widely-available',
      // The policy of the server forbids inline content.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: {
        input: {
          index: join(root, 'packages/web/index.html'),
          // Its place decides which pages a service worker serves.
          sw: join(root, 'packages/web/src/notifications/service-worker.ts'),
        },
        output: {
          entryFileNames: ({ name }) => (name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js'),
          // Zod is configured in the chunk that has it: a schema of any other chunk is made later.
          codeSplitting: { groups: [{ name: 'zod', test: /without-eval|node_modules\/zod\// }] },
        },
      },
      license: { fileName: 'licenses.md' },
      manifest: 'manifest.json',
    },
  })
}

const stamp = '.built-from'

function newestSource(): number {
  const files = globSync(
    [
      'packages/{web,client,session}/src/**/*.{ts,tsx,css}',
      'packages/web/{index.html,public/*}',
      'package-lock.json',
      'scripts/build-web.ts',
    ],
    { cwd: root, exclude: ['**/*.test.ts', '**/testing/**', '**/stores/file/**'] },
  )
  return Math.max(...files.map((file) => statSync(join(root, file)).mtimeMs))
}

function builtAt(): number {
  try {
    return Number(readFileSync(join(webAppFolder, stamp), 'utf8'))
  } catch {
    return 0 // It was never built.
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , folder] = process.argv
  await (folder === undefined ? buildWeb() : bundleWeb(folder))
}
