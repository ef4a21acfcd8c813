// Imports follow the arrows between the packages and never go in a circle, imports of types included.
// npm's hoisting lets a wrong-direction import compile, so nothing else would notice.
import { globSync } from 'node:fs'
import { type Import, importsOf, packageOf, withSlashes } from './import-graph.ts'

/** What each package may import of ours. Tests, benches and scripts may import every package. */
const arrows: Record<string, string[]> = {
  session: [],
  client: ['session'],
  agent: ['session'],
  server: ['session', 'client', 'agent'],
  cli: ['session', 'client', 'agent', 'server'],
  web: ['client', 'session'],
}

/** What each folder of the agent may import of the others. All may import `redaction` and `util`, and tests may import all. */
const agentArrows: Record<string, string[]> = {
  util: [],
  redaction: [],
  models: [],
  tools: [],
  permissions: ['tools'],
  loop: ['models', 'tools'],
  registry: ['models'],
  mcp: ['models', 'tools'],
  resources: ['permissions', 'tools'],
  settings: ['models', 'permissions', 'mcp'],
  extensions: ['models', 'tools', 'loop', 'registry'],
  session: ['models', 'tools', 'permissions', 'loop', 'registry', 'mcp', 'resources', 'settings', 'extensions'],
  testing: ['models', 'tools', 'permissions', 'loop', 'session'],
}

/** The same for the server; all may import `util`. Its files beside the folders put it together and may use all of them. */
const serverArrows: Record<string, string[]> = {
  util: [],
  live: [],
  auth: ['live'],
  observe: ['live'],
  ws: ['live', 'auth'],
  http: ['live', 'auth', 'observe'],
}

/**
 * The same for the command line. The small files beside its folders are for all of them. The screen knows sessions and clients, and nothing of
 * what runs them: so it is the same for a session here and for one on another machine.
 */
const cliArrows: Record<string, string[]> = {
  util: [],
  tui: [],
  host: [],
  print: ['host'],
  sessions: ['host'],
  export: ['sessions'],
  play: ['host'],
  setup: ['host'],
  tour: ['host'],
  commands: ['host', 'tui', 'print', 'sessions', 'export', 'play', 'setup', 'tour'],
  'command-table': ['commands'],
}
const knownToScreens = ['client', 'session', 'cli']

/** Entries a browser loads, with the foreign packages that are meant: whatever they reach has no `node:` and no other. */
const browserEntries = new Map([
  ['packages/session/src/index.ts', []],
  ['packages/client/src/index.ts', ['zod']],
])

function checkArrows(): string[] {
  const files = globSync(['packages/*/src/**/*.ts', 'tests/**/*.ts', 'bench/**/*.ts', 'scripts/**/*.ts', '*.ts'], {
    exclude: ['**/node_modules/**', '**/dist/**', 'tests/fixtures/**'],
  }).map(withSlashes)
  const imports = new Map(files.map((file) => [file, importsOf(file)]))
  const all = [...imports.values()].flat()
  return [
    ...all.flatMap(checkPackageArrow),
    ...all.flatMap(checkSessionArrow),
    ...all.flatMap(checkAgentArrow),
    ...all.flatMap(checkServerArrow),
    ...all.flatMap(checkCliArrow),
    ...[...browserEntries].flatMap(([entry, foreign]) => checkBrowser(entry, foreign, imports)),
    ...findCycles(imports),
  ]
}

function checkPackageArrow({ file, line, specifier, targets }: Import): string[] {
  const from = packageOf(file)
  const allowed = arrows[from ?? '']
  if (from === undefined) return []
  if (allowed === undefined) return [`${file}:${line}: package ${from} has no arrows in scripts/check-arrows.ts`]
  return targets.flatMap(({ file: target }) => {
    const to = packageOf(target)
    if (to === undefined) return [`${file}:${line}: ${specifier} leaves the packages`]
    if (to === from) return []
    if (specifier.startsWith('.')) return [`${file}:${line}: ${specifier} reaches into ${to}; import @tapetree/${to}`]
    return allowed.includes(to) ? [] : [`${file}:${line}: ${from} may not import ${to}`]
  })
}

/** The file store stands on top of the session package: only stores, the test kit and tests know it. */
function checkSessionArrow({ file, line, specifier, targets }: Import): string[] {
  const source = 'packages/session/src/'
  if (!file.startsWith(source) || file.endsWith('.test.ts')) return []
  if (/^(stores|testing)\//.test(file.slice(source.length))) return []
  return targets
    .filter(({ file: target }) => target.startsWith(`${source}stores/file/`))
    .map(() => `${file}:${line}: ${specifier}: only stores/ and testing/ may import stores/file`)
}

/** Files beside the folders are small things that everybody may use, such as the clock, and the entry, which may use everybody. */
function checkAgentArrow({ file, line, specifier, targets }: Import): string[] {
  const from = agentFolderOf(file)
  if (from === undefined || file.endsWith('.test.ts') || file.includes('/testing/')) return []
  const allowed = agentArrows[from]
  if (allowed === undefined) return [`${file}:${line}: folder ${from} has no arrows in scripts/check-arrows.ts`]
  return targets.flatMap(({ file: target }) => {
    const to = agentFolderOf(target)
    if (to === undefined || to === from || to === 'util' || to === 'redaction' || allowed.includes(to)) return []
    return [`${file}:${line}: ${specifier}: ${from} may not import ${to}`]
  })
}

/** A server that is put together elsewhere, as in a test kit, may use what it wants. */
function checkServerArrow({ file, line, specifier, targets }: Import): string[] {
  const from = serverFolderOf(file)
  if (from === undefined || file.endsWith('.test.ts') || file.includes('/testing/')) return []
  const allowed = serverArrows[from]
  if (allowed === undefined) return [`${file}:${line}: folder ${from} has no arrows in scripts/check-arrows.ts`]
  return targets.flatMap(({ file: target }) => {
    if (packageOf(target) !== 'server') return []
    const to = serverFolderOf(target)
    if (to === undefined) return [`${file}:${line}: ${specifier}: ${from} may not import what puts the server together`]
    return to === from || to === 'util' || allowed.includes(to)
      ? []
      : [`${file}:${line}: ${specifier}: ${from} may not import ${to}`]
  })
}

function checkCliArrow({ file, line, specifier, targets }: Import): string[] {
  const from = cliFolderOf(file)
  if (from === undefined || file.endsWith('.test.ts') || file.includes('/testing/')) return []
  const allowed = cliArrows[from]
  if (allowed === undefined) return [`${file}:${line}: folder ${from} has no arrows in scripts/check-arrows.ts`]
  return targets.flatMap(({ file: target }) => {
    const isOutside = from === 'tui' && !knownToScreens.includes(packageOf(target) ?? '')
    if (isOutside) return [`${file}:${line}: ${specifier}: the screen knows only ${knownToScreens.join(', ')}`]
    const to = cliFolderOf(target)
    if (to === undefined || to === from || to === 'util' || allowed.includes(to)) return []
    return [`${file}:${line}: ${specifier}: ${from} may not import ${to}`]
  })
}

function cliFolderOf(file: string): string | undefined {
  return /^packages\/cli\/src\/([^/]+)\//.exec(file)?.[1]
}

function serverFolderOf(file: string): string | undefined {
  return /^packages\/server\/src\/([^/]+)\//.exec(file)?.[1]
}

function agentFolderOf(file: string): string | undefined {
  return /^packages\/agent\/src\/([^/]+)\//.exec(file)?.[1]
}

function checkBrowser(entry: string, foreign: readonly string[], imports: Map<string, Import[]>): string[] {
  const problems: string[] = []
  const reached = new Set([entry])
  for (const file of reached) {
    for (const { line, specifier, targets } of imports.get(file) ?? []) {
      if (targets.length === 0 && !foreign.includes(specifier))
        problems.push(`${file}:${line}: ${specifier} is not for browsers (reached from ${entry})`)
      for (const target of targets) if (target.condition !== 'node') reached.add(target.file)
    }
  }
  return problems
}

function findCycles(imports: Map<string, Import[]>): string[] {
  const cycles: string[] = []
  const settled = new Set<string>()
  const visit = (file: string, path: string[]): void => {
    const start = path.indexOf(file)
    if (start >= 0) cycles.push(`cycle: ${[...path.slice(start), file].join(' -> ')}`)
    if (start >= 0 || settled.has(file)) return
    for (const { targets } of imports.get(file) ?? []) for (const target of targets) visit(target.file, [...path, file])
    settled.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  return cycles
}

const problems = checkArrows()
for (const problem of problems) console.error(problem)
console.log(`arrows: ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1
