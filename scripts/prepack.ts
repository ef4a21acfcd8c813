// Builds a package right before npm packs it. npm starts it in the folder of the package: `"prepack": "node ../../scripts/prepack.ts"`.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { buildCli } from './build-cli.ts'
import { buildWeb } from './build-web.ts'
import { markdownReaders, withMarkdownInside } from './build-cli/markdown-inside.ts'

const root = resolve(import.meta.dirname, '..')
const folder = process.cwd()

async function prepack(): Promise<void> {
  if (basename(folder) === 'cli') return buildCli()
  removeStaleOutput()
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', folder], { stdio: 'inherit' })
  if (basename(folder) === 'agent') putMarkdownInside()
  if (basename(folder) === 'server') await buildWeb()
}

/** Users bundle the agent: it must not read files of its own when it runs. */
function putMarkdownInside(): void {
  for (const module of Object.keys(markdownReaders)) {
    const output = join(folder, 'dist', relative(join(folder, 'src'), module)).replace(/\.ts$/, '.js')
    writeFileSync(output, withMarkdownInside(module) ?? '')
    rmSync(`${output}.map`, { force: true })
  }
}

/** The compiler never deletes the output of a source file that was renamed or removed. */
function removeStaleOutput(): void {
  for (const file of globSync('dist/**/*.{js,d.ts,map}', { cwd: folder })) {
    const source = file.replace(/^dist/, 'src').replace(/(?:\.d\.ts|\.js)(?:\.map)?$/, '.ts')
    if (!existsSync(join(folder, source))) rmSync(join(folder, file))
  }
}

await prepack()
