import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildCli } from '../../scripts/build-cli.ts'

const execute = promisify(execFile)

/** Packs the command as it would be published and installs it alone into an empty folder. Gives the program, for Node to run. */
export async function installCommand(folder: string): Promise<string> {
  await buildCli()
  await npm(['pack', '--ignore-scripts', '--pack-destination', folder, '-w', 'packages/cli'], process.cwd())
  const { version } = JSON.parse(await readFile('packages/cli/package.json', 'utf8')) as { version: string }
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n')
  const archive = `./tapetree-cli-${version}.tgz`
  await npm(['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', archive], folder)
  return join(folder, 'node_modules/.bin/tapetree')
}

/** What npm was told for this repository is not for the other folder. */
async function npm(args: readonly string[], cwd: string): Promise<void> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([variable]) => !/^(?:npm_|INIT_CWD)/i.test(variable)),
  )
  await execute('npm', args, { cwd, env, timeout: 120_000 })
}
