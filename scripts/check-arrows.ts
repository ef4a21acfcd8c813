// Imports follow the arrows between the packages and never go in a circle, imports of types included.
// npm's hoisting lets a wrong-direction import compile, so nothing else would notice.
import { globSync } from 'node:fs'
import { type Import, importsOf, packageOf, withSlashes } from './import-graph.ts'

/** What each package may import of ours. Tests, benches and scripts may import every package. */
const arrows: Record<string, string[]> = {
  session: [],
  redact: [],
  client: ['session'],
  agent: ['session', 'redact'],
  server: ['session', 'client', 'agent'],
  cli: ['session', 'client', 'agent', 'server'],
  web: ['client', 'session'],
}

/**
 * What each folder of a package may import of the others, lowest first: a folder may only name folders that stand above it in its table,
 * so there are no circles. `shared` lists what every folder may import. Tests and `testing/` may import everything, and so may the files
 * beside the folders, which put the package together.
 */
const folderArrows: Record<string, { shared: string[]; folders: Record<string, string[]> }> = {
  session: {
    shared: ['errors.ts', 'util'],
    folders: {
      util: [],
      line: [],
      state: ['line'],
      log: ['line', 'state'],
      view: ['line', 'state'],
      store: ['line', 'state', 'log', 'view'],
      stores: ['line', 'state', 'log', 'view', 'store'],
    },
  },
  client: { shared: [], folders: { protocol: [] } },
  agent: {
    shared: ['util'],
    folders: {
      util: [],
      models: [],
      tools: [],
      permissions: ['tools'],
      workspace: ['tools', 'permissions'],
      sandbox: ['tools', 'permissions', 'workspace'],
      mcp: ['tools'],
      'language-servers': ['tools'],
      resources: ['permissions', 'tools'],
      settings: ['models', 'permissions', 'mcp'],
      prompt: ['models', 'tools', 'permissions', 'workspace', 'resources'],
      summary: ['models', 'prompt'],
      run: ['models', 'tools', 'permissions', 'workspace', 'language-servers', 'prompt', 'summary'],
      extensions: ['models', 'tools', 'run'],
      'tool-host': ['tools', 'permissions', 'sandbox', 'resources', 'run', 'workspace'],
      agent: [
        'models',
        'tools',
        'permissions',
        'workspace',
        'sandbox',
        'mcp',
        'language-servers',
        'resources',
        'settings',
        'prompt',
        'summary',
        'run',
        'extensions',
        'tool-host',
      ],
    },
  },
  server: {
    shared: ['util'],
    folders: {
      util: [],
      bus: [],
      live: [],
      auth: ['live'],
      nodes: ['bus', 'live', 'auth'],
      'tool-hosts': ['bus', 'auth'],
      observe: ['live'],
      acp: [],
      drivers: ['live', 'tool-hosts', 'acp'],
      local: ['live'],
      ws: ['live', 'auth', 'tool-hosts'],
      push: ['live', 'auth'],
      http: ['live', 'auth', 'observe', 'push', 'tool-hosts'],
    },
  },
  // The screen knows sessions and clients and nothing of what runs them, so it is the same for a session on another machine.
  cli: {
    shared: ['util', 'text', 'session-source.ts'],
    folders: {
      util: [],
      text: [],
      'command-line': [],
      tui: [],
      host: ['command-line'],
      print: ['command-line', 'host'],
      acp: ['command-line', 'host', 'print'],
      sessions: ['command-line', 'host'],
      variants: ['command-line', 'host', 'print'],
      export: ['command-line', 'sessions'],
      import: [],
      play: ['command-line'],
      setup: ['command-line', 'host'],
      tour: ['command-line'],
      commands: [
        'command-line',
        'tui',
        'host',
        'print',
        'acp',
        'sessions',
        'variants',
        'export',
        'import',
        'play',
        'setup',
        'tour',
      ],
    },
  },
}
const knownToScreens = ['client', 'session', 'cli']

/** Entries a browser loads, with the foreign packages that are meant: whatever they reach has no `node:` and no other. */
const browserEntries = new Map([
  ['packages/session/src/index.ts', []],
  ['packages/session/src/screen.ts', []],
  ['packages/client/src/index.ts', ['zod']],
])

function checkArrows(): string[] {
  const files = globSync(
    ['packages/*/src/**/*.{ts,tsx}', 'tests/**/*.ts', 'bench/**/*.ts', 'scripts/**/*.ts', '*.ts'],
    {
      exclude: ['**/node_modules/**', '**/dist/**', 'tests/fixtures/**'],
    },
  ).map(withSlashes)
  const imports = new Map(files.map((file) => [file, importsOf(file)]))
  const all = [...imports.values()].flat()
  return [
    ...all.flatMap(checkPackageArrow),
    ...all.flatMap(checkSessionArrow),
    ...all.flatMap(checkFolderArrow),
    ...all.flatMap(checkScreenArrow),
    ...Object.keys(folderArrows).flatMap(checkTable),
    ...[...browserEntries].flatMap(([entry, foreign]) => checkBrowser(entry, foreign, imports)),
    ...findCycles(imports),
  ]
}

function checkPackageArrow({ file, line, specifier, targets }: Import): string[] {
  const from = packageOf(file)
  const allowed = arrows[from ?? '']
  if (from === undefined) return []
  // Tests may use the log and its test kit.
  if (file.endsWith('.test.ts') && specifier.startsWith('@tapetree/session')) return []
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

function checkFolderArrow({ file, line, specifier, targets }: Import): string[] {
  const own = packageOf(file) ?? ''
  const table = folderArrows[own]
  const from = folderOf(file)
  if (table === undefined || from === undefined || from.endsWith('.ts')) return []
  if (file.endsWith('.test.ts') || file.includes('/testing/')) return []
  const allowed = table.folders[from]
  if (allowed === undefined) return [`${file}:${line}: folder ${from} has no arrows in scripts/check-arrows.ts`]
  return targets.flatMap(({ file: target }) => {
    const to = folderOf(target)
    if (packageOf(target) !== own || to === undefined) return []
    if (to === from || table.shared.includes(to) || allowed.includes(to)) return []
    return [`${file}:${line}: ${specifier}: ${from} may not import ${to}`]
  })
}

function checkTable(name: string): string[] {
  const folders = Object.entries(folderArrows[name]?.folders ?? {})
  const names = folders.map(([folder]) => folder)
  return folders.flatMap(([folder, allowed], index) =>
    allowed
      .filter((each) => !names.slice(0, index).includes(each))
      .map((each) => `scripts/check-arrows.ts: ${name}: ${folder} may not name ${each}, which does not stand above it`),
  )
}

function checkScreenArrow({ file, line, specifier, targets }: Import): string[] {
  if (packageOf(file) !== 'cli' || folderOf(file) !== 'tui') return []
  if (file.endsWith('.test.ts') || file.includes('/testing/')) return []
  return targets
    .filter(({ file: target }) => !knownToScreens.includes(packageOf(target) ?? ''))
    .map(() => `${file}:${line}: ${specifier}: the screen knows only ${knownToScreens.join(', ')}`)
}

/** The folder below `src`, or the file itself if it stands beside the folders. */
function folderOf(file: string): string | undefined {
  return /^packages\/[^/]+\/src\/([^/]+)/.exec(file)?.[1]
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
