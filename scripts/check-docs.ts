// Documentation that is wrong fails: every `ts` block is compiled, every `ts run` block is run, every command of a
// `sh` block is run here or is a step of `.ci/run`, every link to a file of ours leads somewhere.
// What cannot be run (it sets up the machine, or starts what we are inside of) is tagged `sh no-run reason="…"`.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'

interface Block {
  file: string
  /** Of the first line inside the fence. */
  line: number
  language: string
  tags: string
  text: string
}

const workFolder = '.docs-check'
// Some need a terminal or do not end: tests/terminal and `npm run proof quickstart` try them. Those with a database are tried by
// tests/operations/postgres.test.ts and postgres-backup.test.ts.
const mayStayUnrun =
  /^(npm (ci|install|i)\b|(sudo )?apt(-get)? |git clone |cd |bash \.ci\/run\b|npm run (?:check|mutation)\b|tapetree( -\w| import)?$|tapetree (serve|attach|tool-host|tour|login)\b|sh deploy\/backup\.sh |rsync |tapetree .*\bpostgres:\/\/|pg_dump |pg_restore |pg_basebackup |createdb )/

function checkDocs(): string[] {
  const files = globSync(['*.md', 'docs/**/*.md', 'examples/*.md', 'packages/*/README.md'], {
    // TypeDoc writes docs/api.
    exclude: ['**/node_modules/**', 'docs/api/**', 'docs/.vitepress/**'],
  }).map((file) => file.replaceAll('\\', '/'))
  const blocks = files.flatMap(blocksOf)
  const typescript = blocks.filter((block) => block.language === 'ts')
  const shell = blocks.filter((block) => block.language === 'sh')
  const problems = [...files.flatMap(checkLinks), ...files.flatMap(checkScripts), ...compile(typescript)]
  // What does not compile would only fail again.
  if (problems.length === 0) problems.push(...typescript.filter(hasTag('run')).flatMap(runTypeScript))
  problems.push(...shell.flatMap(runShell))
  console.log(`docs: ${files.length} pages, ${typescript.length} ts blocks, ${shell.length} sh blocks`)
  return problems
}

function blocksOf(file: string): Block[] {
  const blocks: Block[] = []
  let open: { fence: string; indent: number; block: Block; lines: string[] } | undefined
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    const [, indent = '', fence = '', language = '', tags = ''] = /^(\s*)(`{3,}|~{3,})\s*(\S*)\s*(.*)$/.exec(line) ?? []
    if (open === undefined) {
      if (fence === '') continue
      const block = { file, line: index + 2, language, tags, text: '' }
      open = { fence, indent: indent.length, block, lines: [] }
    } else if (fence.startsWith(open.fence) && language === '') {
      blocks.push({ ...open.block, text: `${open.lines.join('\n')}\n` })
      open = undefined
    } else {
      open.lines.push(line.slice(Math.min(open.indent, line.length - line.trimStart().length)))
    }
  }
  return blocks
}

/** READMEs of packages are also read on npm, where a relative link leads nowhere. */
const repositoryLink = /^https:\/\/github\.com\/tapetree\/tapetree\/(?:blob|tree)\/main\/(.+)$/

function checkLinks(file: string): string[] {
  const text = readFileSync(file, 'utf8').replace(/^(`{3,})[^]*?^\1/gm, (fenced) => fenced.replace(/[^\n]/g, ''))
  return text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)]
      .map((match) => match[1] as string)
      .filter((target) => {
        const [, ours] = repositoryLink.exec(target) ?? []
        if (ours !== undefined) return !existsSync(ours)
        return !/^[a-z]+:/.test(target) && !existsSync(join(dirname(file), target))
      })
      .map((target) => `${file}:${index + 1}: there is no ${target}`),
  )
}

/** A command named in a sentence must at least exist. */
function checkScripts(file: string): string[] {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line, index) =>
    [...line.matchAll(/\bnpm run ([a-z][a-z:-]*)/g)]
      .filter((match) => scripts[match[1] as string] === undefined)
      .map((match) => `${file}:${index + 1}: there is no script ${match[1]}`),
  )
}

function compile(blocks: Block[]): string[] {
  rmSync(workFolder, { recursive: true, force: true })
  if (blocks.length === 0) return []
  mkdirSync(workFolder)
  for (const block of blocks) writeFileSync(join(workFolder, sourceName(block)), block.text)
  const config = {
    extends: '../tsconfig.base.json',
    compilerOptions: {
      noEmit: true,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
      moduleDetection: 'force',
    },
    // Nothing imports what is declared of untyped modules and of provider packages that are not installed.
    include: ['*.ts', '../packages/*/src/**/*.d.ts', '../scripts/docs/*.d.ts'],
  }
  writeFileSync(join(workFolder, 'tsconfig.json'), JSON.stringify(config))
  const { status, stdout, stderr } = spawnSync('tsc -p .docs-check --pretty false', { shell: true, encoding: 'utf8' })
  if (status === 0) return []
  const bySource = new Map(blocks.map((block) => [sourceName(block), block]))
  return `${stdout}${stderr}`
    .split('\n')
    .filter(Boolean)
    .map((message) => {
      const [, source = '', line = '', rest = ''] = /^\.docs-check\/(.+\.ts)\((\d+),\d+\): (.*)$/.exec(message) ?? []
      const block = bySource.get(source)
      return block === undefined ? message : `${block.file}:${block.line + Number(line) - 1}: ${rest}`
    })
}

/** In an empty folder of its own, so that an example may write files. */
function runTypeScript(block: Block): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'tapetree-docs-'))
  const source = resolve(workFolder, sourceName(block))
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-C', '@tapetree/source', source], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
  })
  rmSync(folder, { recursive: true, force: true })
  console.log(`${block.file}:${block.line}: ran\n${stdout.trimEnd().replace(/^/gm, '    ')}`)
  return status === 0 ? [] : [`${block.file}:${block.line}: exit code ${status}\n${stdout}${stderr}`]
}

function runShell(block: Block): string[] {
  const place = `${block.file}:${block.line}`
  const commands = commandsOf(block)
  if (hasTag('no-run')(block)) {
    const reason = /reason="([^"]+)"/.exec(block.tags)?.[1]
    if (reason === undefined) return [`${place}: no-run needs a reason="…"`]
    console.log(`${place}: not run (${reason}): ${commands.join('; ')}`)
    const runnable = commands.filter((command) => !mayStayUnrun.test(command) && !ciCommands().has(command))
    return runnable.map((command) => `${place}: \`${command}\` can be run, so it may not be tagged no-run`)
  }
  return commands.flatMap((command) => {
    if (ciCommands().has(command)) {
      console.log(`${place}: a step of .ci/run: ${command}`)
      return []
    }
    const { status, stdout, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', command], {
      ...(/\btapetree /.test(command) && world.place),
      encoding: 'utf8',
      timeout: 120_000,
    })
    console.log(`${place}: ran: ${command}`)
    return status === 0 ? [] : [`${place}: \`${command}\` gave exit code ${status}\n${stdout}${stderr}`]
  })
}

/** One command for each line; a line that ends in a backslash goes on, comments go away. */
function commandsOf(block: Block): string[] {
  return block.text
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter(Boolean)
}

/** The commands of the steps in `.ci/run`: they are run anyway, with a budget, so not again here. */
function ciCommands(): Set<string> {
  const steps = readFileSync('.ci/run', 'utf8').matchAll(/^[a-z-]+\|(?:check|proof|alone)\|\d+\|(.+)$/gm)
  return new Set([...steps].map((step) => (step[1] as string).replace(/ -- --gate$/, '')))
}

function hasTag(tag: string): (block: Block) => boolean {
  return (block) => block.tags.split(/\s+/).includes(tag)
}

function sourceName(block: Block): string {
  return `${block.file.replaceAll(/[^A-Za-z0-9]+/g, '-')}-L${block.line}.ts`
}

interface World {
  place: { cwd: string; env: NodeJS.ProcessEnv }
  end: () => void
}

/** See scripts/docs/world.ts. */
async function openWorld(): Promise<World> {
  const child = spawn(process.execPath, ['-C', '@tapetree/source', 'scripts/docs/world.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return { place: JSON.parse(line) as World['place'], end: () => child.kill() }
}

const world = await openWorld()
const problems = checkDocs()
world.end()
for (const problem of problems) console.error(problem)
console.log(`docs: ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1
