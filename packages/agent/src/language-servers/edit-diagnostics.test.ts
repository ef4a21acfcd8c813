import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { chmod, realpath, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { readProcess } from '../tools/commands/process-table.ts'
import { diagnosticsTool } from './diagnostics-tool.ts'
import { callTool, testContext } from '../testing/tool-context.ts'
import { diagnosticLines, EditDiagnostics } from './edit-diagnostics.ts'
import { LanguageServers } from './language-servers.ts'

const scripted = fileURLToPath(new URL('testing/scripted-server.ts', import.meta.url))
const signal = new AbortController().signal

const open: { servers: LanguageServers; folder: TestFolder }[] = []
afterEach(async () => {
  for (const { servers, folder } of open.splice(0)) {
    await servers.release()
    await folder[Symbol.asyncDispose]()
  }
})

interface Workspace {
  folder: TestFolder
  servers: LanguageServers
  diagnostics: EditDiagnostics
  edit: (name: string, text: string) => Promise<void>
  /** The lines of the report; without one, undefined. */
  report: (isSettled?: boolean, runId?: string) => Promise<string[] | undefined>
}

/** A Python project whose pyright is the scripted server. */
async function scriptedWorkspace(mode: string, clock?: Clock): Promise<Workspace> {
  const folder = await TestFolder.make({ 'pyproject.toml': '', 'node_modules/.bin/keep': '' })
  const program = folder.at('node_modules/.bin/pyright-langserver')
  await folder.write(
    'node_modules/.bin/pyright-langserver',
    `#!/bin/sh\nexec '${process.execPath}' '${scripted}' ${mode} '${folder.at('notes')}'\n`,
  )
  await chmod(program, 0o755)
  return workspaceIn(folder, clock)
}

/** By default no time passes, so that a busy machine does not end the patience of a run. */
function workspaceIn(folder: TestFolder, clock: Clock = new FakeClock()): Workspace {
  const servers = LanguageServers.share({ workspace: folder.path, environment: process.env, clock })
  open.push({ servers, folder })
  const diagnostics = new EditDiagnostics(servers, { cwd: folder.path, clock })
  return {
    folder,
    servers,
    diagnostics,
    edit: async (name, text) => {
      await folder.write(name, text)
      diagnostics.afterCall([{ type: 'write', path: folder.at(name) }])
    },
    report: async (isSettled = false, runId = 'run') =>
      (await diagnostics.report({ runId, isSettled }, signal))?.split('\n').slice(2, -1),
  }
}

describe.each([
  ['pull', 'test'],
  ['push', 'test'],
  ['tsserver', 'typescript'],
])('with a server that speaks %s', (mode, source) => {
  test('an error is told once when the edits have stopped, and again only if it comes back', async () => {
    const { edit, report } = await scriptedWorkspace(mode)
    await edit('a.py', 'BAD one\n')
    expect(await report()).toBeUndefined() // still editing
    expect(await report()).toEqual([`a.py:1:1 error: BAD one is bad (${source})`])
    expect(await report()).toBeUndefined()
    await edit('a.py', 'moved\nBAD one\n')
    expect(await report(true)).toBeUndefined()
    await edit('a.py', 'fine\n')
    expect(await report(true)).toBeUndefined()
    await edit('a.py', 'BAD one\n')
    expect(await report(true)).toEqual([`a.py:1:1 error: BAD one is bad (${source})`])
  })

  test('all edits of a refactoring are told together when the model settles', async () => {
    const { edit, report } = await scriptedWorkspace(mode)
    for (const name of ['a.py', 'b.py', 'c.py']) {
      await edit(name, `BAD ${name}\n`)
      expect(await report()).toBeUndefined()
    }
    await edit('b.py', 'good\n')
    expect(await report(true)).toEqual([
      `a.py:1:1 error: BAD a.py is bad (${source})`,
      `c.py:1:1 error: BAD c.py is bad (${source})`,
    ])
  })
})

test('a server that publishes nothing at first, and then the errors, is told with the errors', async () => {
  const { edit, report } = await scriptedWorkspace('stages', systemClock)
  await edit('a.py', 'BAD one\n')
  let run = 0
  await vi.waitFor(async () => expect(await report(true, `run-${run++}`)).toEqual([errorIn('a.py')]), patiently)
  expect(await report(true, 'next')).toBeUndefined()
})

test('what a server publishes after a run has waited for it is told with the next report', async () => {
  const clock = new FakeClock()
  const { folder, edit, report } = await scriptedWorkspace('late', clock)
  await edit('a.py', 'BAD one\n')
  const first = report(true)
  // It has published that there is nothing, and is given time for more.
  await vi.waitFor(() => expect(clock.waits[0]).toBe(500), patiently)
  clock.advance(500)
  expect(await first).toBeUndefined()
  await folder.write('go', '')
  await vi.waitFor(async () => expect(await report()).toEqual([errorIn('a.py')]), patiently)
  expect(await report(true)).toBeUndefined()
})

const patiently = { timeout: 20_000, interval: 20 }
const errorIn = (name: string): string => `${name}:1:1 error: BAD one is bad (test)`

test('a file that was read and fails since an edit of another is told; its earlier errors are not', async () => {
  const { folder, diagnostics, edit, report } = await scriptedWorkspace('pull')
  await folder.write('old.py', 'BAD before\n')
  await edit('a.py', 'fine\n')
  expect(await report(true)).toBeUndefined()
  diagnostics.afterCall([{ type: 'read', path: folder.at('old.py') }])
  await vi.waitFor(async () => expect(await folder.read('notes')).toContain('didOpen old.py'), patiently)
  await folder.write('old.py', 'BAD before\nBAD now\n')
  await edit('a.py', 'fine too\n')
  expect(await report(true)).toEqual(['old.py:2:1 error: BAD now is bad (test)'])
})

test('a report is capped and says how much it leaves out', async () => {
  const { edit, report } = await scriptedWorkspace('pull')
  for (const name of ['a.py', 'b.py', 'c.py', 'd.py'])
    await edit(name, Array.from({ length: 60 }, (_, line) => `BAD ${line}\n`).join(''))
  const lines = await report(true)
  expect(lines).toHaveLength(51)
  expect(lines?.[20]).toBe('a.py: and 40 more')
  expect(lines?.at(-1)).toBe('[34 more lines are left out.]')
})

test.each(['hang', 'mute', 'flood', 'huge', 'crash'])(
  'a server that does %s costs a run 2 s and 16 MB at most',
  async (mode) => {
    const { edit, report } = await scriptedWorkspace(mode, systemClock)
    const before = keptBytes()
    const buffersBefore = process.memoryUsage().external
    let mostBuffers = 0
    // What it sends arrives in buffers.
    const sampling = setInterval(() => (mostBuffers = Math.max(mostBuffers, process.memoryUsage().external)), 1)
    let waited = 0
    for (let round = 0; round < 5; round++) {
      await edit('a.py', `BAD ${round}\n`)
      const begun = performance.now()
      await report(true)
      waited += performance.now() - begun
    }
    clearInterval(sampling)
    expect(waited).toBeLessThan(3000)
    expect((mostBuffers - buffersBefore) / 2 ** 20).toBeLessThan(16)
    expect((keptBytes() - before) / 2 ** 20).toBeLessThan(16)
  },
)

/** What is still referenced. */
function keptBytes(): number {
  const { heapUsed, external } = keptMemory()
  return heapUsed + external
}

function keptMemory(): NodeJS.MemoryUsage {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage()
}

test('a server that has died is started again after a pause, not at once', async () => {
  const { folder, edit, report, servers } = await scriptedWorkspace('crash')
  await edit('a.py', 'BAD\n')
  await report(true)
  await edit('a.py', 'BAD again\n')
  await report(true)
  expect((await folder.read('notes')).match(/started/g)).toHaveLength(1)
  expect(servers.problems).toEqual(['The language server pyright is gone. It ended (exit code 3).'])
})

test('the state of a server goes from its start to what it finds, and says when it can start again', async () => {
  const clock = new FakeClock()
  const { folder, edit, report, servers } = await scriptedWorkspace('pull', clock)
  const states: unknown[] = []
  servers.subscribe(() => states.push(...servers.states))
  expect(servers.states).toEqual([])
  await edit('a.py', 'BAD one\nBAD two\n')
  await report(true)
  await edit('a.py', 'BAD one\n')
  await report(true)
  const found = { name: 'pyright', warnings: 0 }
  expect(states.splice(0)).toEqual([
    { ...found, status: 'starting', errors: 0 },
    { ...found, status: 'running', errors: 2 },
    { ...found, status: 'running', errors: 1 },
  ])
  const [, pid] = /started (\d+)/.exec(await folder.read('notes')) ?? []
  process.kill(Number(pid))
  const problem = expect.stringContaining('The language server pyright is gone.') as string
  await vi.waitFor(() => expect(states).toHaveLength(1), patiently)
  expect(states).toEqual([{ ...found, status: 'failed', errors: 0, problem, retryAt: clock.now() + 1000 }])
})

test('a server that refuses to start is ended, and its sentence is the problem', async () => {
  const { folder, edit, report, servers } = await scriptedWorkspace('refuse')
  await edit('a.py', 'BAD\n')
  expect(await report(true)).toBeUndefined()
  expect(servers.problems).toEqual(['The language server pyright is gone. No licence.'])
  const [, pid] = /started (\d+)/.exec(await folder.read('notes')) ?? []
  await vi.waitFor(() => expect(readProcess(Number(pid))?.isZombie ?? true).toBe(true), patiently)
})

test('a question that a server cancels is asked again', async () => {
  const { edit, report } = await scriptedWorkspace('cancel')
  await edit('a.py', 'BAD one\n')
  await edit('b.py', 'BAD one\n')
  expect(await report(true)).toEqual([errorIn('a.py'), errorIn('b.py')])
  await edit('a.py', 'BAD two\n')
  expect(await report(true)).toEqual(['a.py:1:1 error: BAD two is bad (test)'])
})

test('a file about which a server reports an error of its own does not hide the others', async () => {
  const { edit, report } = await scriptedWorkspace('partial')
  await edit('broken.py', 'BAD one\n')
  await edit('a.py', 'BAD one\n')
  expect(await report(true)).toEqual([errorIn('a.py')])
})

test.each(['null', 'array', 'deep'])('a server that sends a message such as %s is ended', async (mode) => {
  const { edit, report, servers } = await scriptedWorkspace(mode)
  await edit('a.py', 'BAD one\n')
  expect(await report(true)).toBeUndefined()
  expect(servers.problems).toEqual([
    'The language server pyright is gone. It sent a message that does not fit the protocol.',
  ])
})

test('an error whose message is no text is an error of the server about this file', async () => {
  const { edit, report, servers } = await scriptedWorkspace('error-object')
  await edit('a.py', 'BAD one\n')
  expect(await report(true)).toBeUndefined()
  expect(servers.states).toMatchObject([{ status: 'starting' }])
})

test('an error in a file that a server did not answer for is told when the server runs again', async () => {
  const clock = new FakeClock()
  const { edit, report } = await scriptedWorkspace('crash-once', clock)
  await edit('a.py', 'BAD one\n')
  expect(await report(true)).toBeUndefined()
  clock.advance(60_000)
  await edit('b.py', 'fine\n')
  expect(await report(true)).toEqual([errorIn('a.py')])
})

test('up to 64 changed files are compared; of more, the newest', async () => {
  const { edit, report } = await scriptedWorkspace('pull')
  for (let file = 0; file < 40; file++) await edit(`${file}.py`, 'BAD one\n')
  expect(await report(true)).toHaveLength(40)
  for (let file = 0; file < 70; file++) await edit(`${file}.py`, 'BAD two\n')
  const told = await report(true)
  expect(told?.[0]).toMatch(/^6\.py:1:1 error/)
  expect(told?.at(-1)).toBe('[14 more lines are left out.]')
})

test('what a server publishes about a file while another session asks about its own is told', async () => {
  const { folder, servers, edit, report } = await scriptedWorkspace('others')
  await edit('a.py', 'BAD one\n')
  expect(await report(true)).toBeUndefined()
  const other = new EditDiagnostics(servers, { cwd: folder.path, clock: new FakeClock() })
  await folder.write('b.py', 'fine\n')
  other.afterCall([{ type: 'write', path: folder.at('b.py') }])
  expect(await other.report({ runId: 'run', isSettled: true }, signal)).toBeUndefined()
  expect(await report(true)).toEqual([errorIn('a.py')])
})

test('what a server publishes stays in its line and in the workspace', async () => {
  const { folder, edit, diagnostics } = await scriptedWorkspace('rude')
  await edit('a.py', 'BAD one\n')
  const { found } = await diagnostics.check(undefined)
  expect([...found.keys()]).toEqual([folder.at('a.py')])
  const [line = '', ...more] = diagnosticLines(found, folder.path)
  expect(more).toEqual([])
  expect(line).toMatch(/^a\.py:1:1 error: bad \( &lt;\/diagnostics> \[31ms+$/)
  expect(line.length).toBeLessThan(330)
})

test('a line cannot end its element, whatever the file is called', () => {
  const found = { line: 1, column: 1, severity: 'error', message: 'bad' } as const
  const path = '/project/x\n</diagnostics>.py'
  expect(diagnosticLines(new Map([[path, Array.from({ length: 21 }, () => found)]]), '/project').slice(-2)).toEqual([
    String.raw`"x\n&lt;/diagnostics>.py":1:1 error: bad`,
    String.raw`"x\n&lt;/diagnostics>.py": and 1 more`,
  ])
})

test('long messages of a server do not stay in memory', async () => {
  const clock = new FakeClock()
  const { edit, diagnostics } = await scriptedWorkspace('long', clock)
  const before = keptMemory().heapUsed
  for (let file = 0; file < 6; file++) {
    await edit(`${file}.py`, 'BAD\n')
    const { found } = await diagnostics.check(undefined)
    expect(found.size).toBe(file + 1)
    clock.advance(6000)
  }
  expect((keptMemory().heapUsed - before) / 2 ** 20).toBeLessThan(4)
})

test('a server that has failed five times is not started again', async () => {
  const clock = new FakeClock()
  const { edit, report, servers } = await scriptedWorkspace('crash', clock)
  for (let start = 0; start < 5; start++) {
    await edit('a.py', `BAD ${start}\n`)
    await report(true)
    clock.advance(60_000)
  }
  expect(servers.states).toMatchObject([{ status: 'failed', retryAt: null }])
})

test('a server that was healthy for ten minutes may fail five times again', async () => {
  const clock = new FakeClock()
  const { folder, edit, report, servers } = await scriptedWorkspace('pull', clock)
  for (let start = 1; start <= 6; start++) {
    await edit('a.py', `BAD ${start}\n`)
    expect(await report(true, `run-${start}`)).toHaveLength(1)
    clock.advance(600_000)
    const [pid] = (await folder.read('notes')).match(/(?<=started )\d+/g)?.slice(-1) ?? []
    process.kill(Number(pid))
    await vi.waitFor(() => expect(servers.states).toMatchObject([{ status: 'failed' }]), patiently)
    expect(servers.states).toMatchObject([{ retryAt: clock.now() + 1000 }])
    clock.advance(1000)
  }
})

test('sessions of one workspace share a server, and the last to leave ends it', async () => {
  const { folder, edit, report } = await scriptedWorkspace('pull')
  const other = LanguageServers.share({ workspace: folder.path, environment: process.env })
  await edit('a.py', 'BAD\n')
  await report(true)
  await other.diagnose([folder.at('a.py')], { starts: true })
  const [, pid] = /started (\d+)/.exec(await folder.read('notes')) ?? []
  expect((await folder.read('notes')).match(/started/g)).toHaveLength(1)
  await other.release()
  expect(readProcess(Number(pid))).toBeDefined()
  await open[0]?.servers.release()
  expect(readProcess(Number(pid))?.isZombie ?? true).toBe(true)
})

test('files without a server, outside of the workspace or without a project start nothing', async () => {
  const folder = await TestFolder.make({ 'a.py': 'BAD\n', 'b.txt': 'BAD\n' })
  const { diagnostics, report } = workspaceIn(folder)
  diagnostics.afterCall([
    { type: 'write', path: folder.at('a.py') },
    { type: 'write', path: folder.at('b.txt') },
    { type: 'write', path: '/etc/c.py' },
  ])
  expect(await report(true)).toBeUndefined()
})

test('the tool tells errors on demand', async () => {
  const { folder, diagnostics } = await scriptedWorkspace('pull')
  await folder.write('a.py', 'BAD\n')
  const tool = diagnosticsTool(diagnostics)
  const context = testContext({ cwd: folder.path })
  expect(await callTool(tool, { path: 'a.py' }, context)).toEqual({ content: 'a.py:1:1 error: BAD is bad (test)' })
  await folder.write('a.py', 'good\n')
  expect(await callTool(tool, { path: 'a.py' }, context)).toEqual({ content: 'There are no errors and no warnings.' })
  expect(await callTool(tool, { path: 'b.txt' }, context)).toEqual({
    content: 'There is no language server for b.txt, or it does not run.',
  })
})

test('the tool does not say that there are no errors if a language server is gone', async () => {
  const folder = await TestFolder.make({})
  const problem = 'The language server pyright is gone. It ended (exit code 3).'
  const tool = diagnosticsTool({ check: async () => ({ found: new Map(), problems: [problem] }) })
  expect(await callTool(tool, {}, testContext({ cwd: folder.path }))).toEqual({
    content: `No errors are known, but not every file was checked.\n${problem}`,
  })
})

test('TypeScript: an edit that breaks a type is told once, in the file and in the one that uses it; a fix clears it', async () => {
  const { folder, edit, report, diagnostics } = await typescriptWorkspace({
    'a.ts': 'export const count: number = 1\n',
    'b.ts': "import { count } from './a.ts'\nexport const twice: number = count * 2\n",
  })
  const path = folder.at('b.ts')
  await diagnostics.check([path])
  diagnostics.afterCall([{ type: 'read', path }])
  await edit('a.ts', "export const count: string = 'one'\n")
  expect(await report(true)).toEqual([expect.stringMatching(/^b\.ts:2:\d+ error: The left-hand side .* \(ts 2362\)$/)])
  expect(await report(true)).toBeUndefined()
  await edit('a.ts', "export const count: number = 'one'\n")
  expect(await report(true)).toEqual([expect.stringMatching(/^a\.ts:1:14 error: Type 'string' .* \(ts 2322\)$/)])
  await edit('a.ts', 'export const count: number = 2\n')
  expect(await report(true)).toBeUndefined()
  expect((await diagnostics.check(undefined)).found.get(path)).toEqual([])
})

test('TypeScript: each file is read in its own language', async () => {
  const { folder, edit, report, diagnostics } = await typescriptWorkspace({
    'jsx.d.ts': 'declare namespace JSX {\n  interface IntrinsicElements {\n    p: object\n  }\n}\n',
  })
  await edit('a.ts', 'export const count: number = 1\n')
  await edit('app.tsx', "import { count } from './a.ts'\nexport const app = <p>{count}</p>\n")
  await edit('old.js', 'export const count = /** @type {any} */ (1)\n')
  await edit('old.jsx', 'export const app = <p>{1}</p>\n')
  await edit('assert.ts', 'const one: unknown = 1\nexport const two = <number>one\n')
  expect(await report(true)).toBeUndefined()
  const { found } = await diagnostics.check(undefined)
  expect([...found.values()].flat()).toEqual([])
  expect([...found.keys()]).toEqual(expect.arrayContaining(['app.tsx', 'old.jsx'].map((name) => folder.at(name))))
  await edit('app.tsx', 'export const app = <div />\n')
  expect(await report(true)).toEqual([
    expect.stringMatching(/^app\.tsx:1:20 error: Property 'div' does not exist .* \(ts 2339\)$/),
  ])
})

/** A project with the TypeScript of this repository. */
async function typescriptWorkspace(files: Record<string, string>): Promise<Workspace> {
  const compilerOptions = { strict: true, noEmit: true, allowImportingTsExtensions: true, types: [], jsx: 'preserve' }
  const folder = await TestFolder.make({
    'tsconfig.json': JSON.stringify({ compilerOptions: { ...compilerOptions, allowJs: true } }),
    'node_modules/.bin/keep': '',
    ...files,
  })
  const typescript = await realpath(dirname(fileURLToPath(import.meta.resolve('typescript/package.json'))))
  await symlink(typescript, folder.at('node_modules/typescript'))
  await symlink(join(typescript, 'bin/tsc'), folder.at('node_modules/.bin/tsc'))
  return workspaceIn(folder)
}
