import { execFile } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { npm, type PackedPackage } from './packages.ts'

/** The linters of packages and esbuild, with a lock file of their own: nothing else in the repository needs them. */
export const toolFolder = resolve(import.meta.dirname, '../../tools/packages')

/** Installs a folder of tools from its lock file, unless it is installed. */
export async function installTools(folder = toolFolder): Promise<void> {
  const installed = join(folder, 'node_modules/.package-lock.json')
  const isCurrent =
    existsSync(installed) && statSync(installed).mtimeMs >= statSync(join(folder, 'package-lock.json')).mtimeMs
  if (!isCurrent) await npm(['ci', '--prefer-offline', '--strict-allow-scripts'], { cwd: folder })
}

/** What publint and arethetypeswrong find in packed packages. */
export async function lintPackages(packed: readonly PackedPackage[]): Promise<string[]> {
  await installTools()
  const problems: string[] = []
  for (const { manifest, file } of packed) {
    const isLibrary = manifest.bin === undefined
    const found = await Promise.all([
      runTool('publint/src/cli.js', [file, '--strict']),
      isLibrary ? runTool('@arethetypeswrong/cli/dist/index.js', [file, '--profile', 'esm-only']) : undefined,
    ])
    problems.push(...found.flatMap((output) => (output === undefined ? [] : [`${manifest.name}: ${output}`])))
  }
  return problems
}

/** Undefined if the tool has nothing to complain about. */
async function runTool(program: string, args: readonly string[]): Promise<string | undefined> {
  return promisify(execFile)(process.execPath, [join(toolFolder, 'node_modules', program), ...args]).then(
    () => undefined,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
  )
}
