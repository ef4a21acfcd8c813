import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'rolldown'
import { agentPrograms, markdownInside, native } from '../../scripts/build-cli.ts'

export interface BundleOptions {
  folder: string
  compileCache: string
  /** What the program starts from beside itself. */
  beside?: readonly string[]
}

/**
 * Bundles a program that is killed and started again and again, and returns its file. It starts in about a sixth of the processor time that it
 * needs from its sources. Packages with machine code are not in it and are found through a link. The compile cache is filled too: a process
 * that is killed never writes what it has compiled.
 */
export async function bundleProgram(
  program: string,
  { folder, compileCache, beside = [] }: BundleOptions,
): Promise<string> {
  const own = [program, ...beside].map((file) => [basename(file, '.ts'), file])
  await build({
    input: { ...agentPrograms, ...Object.fromEntries(own) },
    platform: 'node',
    external: native,
    resolve: { conditionNames: ['@tapetree/source', 'node', 'module', 'default'] },
    plugins: [markdownInside()],
    logLevel: 'warn',
    output: { dir: folder, format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'chunk-[name].js' },
  })
  await symlink(resolve(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'))
  const bundled = join(folder, `${basename(program, '.ts')}.js`)
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache }
  const once = `await import(${JSON.stringify(pathToFileURL(bundled))}); process.exit()`
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', once], { env })
  return bundled
}
