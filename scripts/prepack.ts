// Builds a package right before npm packs it. npm starts it in the folder of the package: `"prepack": "node ../../scripts/prepack.ts"`.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, rmSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { buildCli } from './build-cli.ts'

const root = resolve(import.meta.dirname, '..')
const folder = process.cwd()

async function prepack(): Promise<void> {
  if (basename(folder) === 'cli') return buildCli()
  removeStaleOutput()
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', folder], { stdio: 'inherit' })
}

/** The compiler never deletes the output of a source file that was renamed or removed. */
function removeStaleOutput(): void {
  for (const file of globSync('dist/**/*.{js,d.ts,map}', { cwd: folder })) {
    const source = file.replace(/^dist/, 'src').replace(/(?:\.d\.ts|\.js)(?:\.map)?$/, '.ts')
    if (!existsSync(join(folder, source))) rmSync(join(folder, file))
  }
}

await prepack()
