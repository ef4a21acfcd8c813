import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { npm, packPackages } from '../../scripts/release/packages.ts'

/** Packs the command as it would be published and installs it alone into an empty folder. Gives the program, for Node to run. */
export async function installCommand(folder: string): Promise<string> {
  const archives = (await packPackages(folder, ['cli'])).map(({ file }) => file)
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n')
  const options = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
  await npm(['install', ...options, ...archives], { cwd: folder })
  return join(folder, 'node_modules/.bin/tapetree')
}
