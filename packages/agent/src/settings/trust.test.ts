import { chmod, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { inspectProject, type Project } from './inspect-project.ts'
import { TrustStore } from './trust-store.ts'
import { grantTrust, revokeTrust, settleTrust, trustOf, type ProjectTrust } from './trust.ts'

interface Scene extends AsyncDisposable {
  folder: TestFolder
  store: TrustStore
  inspect: (below?: string) => Promise<Project>
  state: (below?: string) => Promise<ProjectTrust>
}

async function makeScene(files: Record<string, string>): Promise<Scene> {
  const inRepository = Object.entries(files).map(([name, text]): [string, string] => [`repository/${name}`, text])
  const folder = await TestFolder.make({ 'repository/README.md': '', ...Object.fromEntries(inRepository) })
  const root = folder.at('repository')
  const store = new TrustStore(folder.at('config'))
  const inspect = (below = ''): Promise<Project> => inspectProject(root, join(root, below))
  return {
    folder,
    store,
    inspect,
    state: async (below) => trustOf(await inspect(below), store),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}

const settings = '.tapetree/settings.json'
const withServer = (...args: string[]): string => JSON.stringify({ mcpServers: { docs: { command: 'npx', args } } })

test('a repository without configuration has nothing to trust, even with instructions', async () => {
  await using scene = await makeScene({ 'AGENTS.md': 'words', 'package.json': '{}' })
  expect((await scene.state()).state).toBe('nothing-to-trust')
})

test('a repository is untrusted until the user trusts it, and again after they revoke it', async () => {
  await using scene = await makeScene({ [settings]: '{}' })
  expect(await scene.state()).toMatchObject({
    state: 'untrusted',
    reason: `${scene.folder.at('repository')} is not trusted.`,
  })
  await grantTrust(await scene.inspect(), scene.store)
  expect((await scene.state()).state).toBe('trusted')
  await revokeTrust(scene.folder.at('repository'), scene.store)
  expect((await scene.state()).state).toBe('untrusted')
})

test('one different byte is a change, and the result lists what was added, removed and changed', async () => {
  await using scene = await makeScene({
    [settings]: withServer('a'),
    '.agents/skills/a/SKILL.md': 'a',
    '.tapetree/prompts/p.md': 'p',
  })
  await grantTrust(await scene.inspect(), scene.store)
  await scene.folder.write(`repository/${settings}`, withServer('b'))
  await rm(scene.folder.at('repository/.tapetree/prompts/p.md'))
  await scene.folder.write('repository/.agents/skills/b/SKILL.md', 'b')
  expect(await scene.state()).toMatchObject({
    state: 'changed',
    changes: [
      { change: 'added', what: 'file', name: '.agents/skills/b/SKILL.md' },
      { change: 'removed', what: 'file', name: '.tapetree/prompts/p.md' },
      { change: 'changed', what: 'file', name: settings },
      { change: 'changed', what: 'command', name: 'MCP server docs' },
    ],
  })
})

test('trust covers the programs of the repository that its commands name', async () => {
  await using scene = await makeScene({
    [settings]: JSON.stringify({
      mcpServers: { docs: { command: 'node', args: ['tools/serve.js'] } },
      hooks: { toolCall: [{ command: 'sh ./tools/check.sh --fast' }] },
    }),
    'tools/serve.js': '1',
    'tools/check.sh': '1',
    'tools/other.js': '1',
  })
  await grantTrust(await scene.inspect(), scene.store)
  await scene.folder.write('repository/tools/other.js', '2')
  expect((await scene.state()).state).toBe('trusted')
  await scene.folder.write('repository/tools/check.sh', '2')
  expect(await scene.state()).toMatchObject({
    changes: [{ change: 'changed', what: 'program', name: 'tools/check.sh' }],
  })
})

test('a subfolder is trusted separately, and the rest stays trusted', async () => {
  await using scene = await makeScene({ [settings]: '{}', 'x/.agents/skills/a/SKILL.md': 'a', 'y/z': '' })
  await grantTrust(await scene.inspect(), scene.store)
  expect((await scene.state('y')).state).toBe('trusted')
  expect(await scene.state('x')).toMatchObject({ changes: [{ change: 'added', name: 'x/.agents/skills/a/SKILL.md' }] })
  await grantTrust(await scene.inspect('x'), scene.store)
  expect([(await scene.state('x')).state, (await scene.state()).state]).toEqual(['trusted', 'trusted'])
  await grantTrust(await scene.inspect(), scene.store)
  expect((await scene.state('x')).state).toBe('trusted')
})

test('the inspected version is trusted, whatever has changed meanwhile', async () => {
  await using scene = await makeScene({ [settings]: withServer('shown') })
  const shown = await scene.inspect()
  await scene.folder.write(`repository/${settings}`, withServer('swapped'))
  await grantTrust(shown, scene.store)
  expect((await scene.state()).state).toBe('changed')
})

test('a copy of a trusted repository elsewhere is not trusted', async () => {
  await using scene = await makeScene({ [settings]: '{}' })
  await grantTrust(await scene.inspect(), scene.store)
  await scene.folder.write('repository-evil/.tapetree/settings.json', '{}')
  const copy = await inspectProject(scene.folder.at('repository-evil'))
  expect((await trustOf(copy, scene.store)).state).toBe('untrusted')
})

test('a repository beyond the limits cannot be trusted', async () => {
  await using scene = await makeScene({ [settings]: '{}', [`.agents/${'d/'.repeat(20)}x`]: '' })
  const project = await scene.inspect()
  await expect(grantTrust(project, scene.store)).rejects.toMatchObject({ code: 'cannot-trust' })
  expect((await settleTrust(project, scene.store, () => Promise.resolve(true))).state).toBe('untrusted')
  expect(project.summary.at(-1)).toBe('It has too many files to inspect, so it cannot be trusted.')
})

describe('the user is asked if possible', () => {
  test('without a user nothing becomes trusted', async () => {
    await using scene = await makeScene({ [settings]: '{}' })
    expect((await settleTrust(await scene.inspect(), scene.store)).state).toBe('untrusted')
    expect((await scene.state()).state).toBe('untrusted')
  })

  test('a grant holds from then on and is not requested again', async () => {
    await using scene = await makeScene({ [settings]: '{}' })
    const asked: string[] = []
    const yes = ({ state }: ProjectTrust): Promise<boolean> => Promise.resolve(asked.push(state) > 0)
    for (let count = 0; count < 2; count++) {
      expect((await settleTrust(await scene.inspect(), scene.store, yes)).state).toBe('trusted')
    }
    await scene.folder.write(`repository/${settings}`, '{ }')
    expect((await settleTrust(await scene.inspect(), scene.store, () => Promise.resolve(false))).state).toBe('changed')
    expect((await settleTrust(await scene.inspect(), scene.store, yes)).state).toBe('trusted')
    expect(asked).toEqual(['untrusted', 'changed'])
  })

  test('the user is not asked about a repository with nothing to trust', async () => {
    await using scene = await makeScene({})
    const ask = (): Promise<boolean> => Promise.reject(new Error('was asked'))
    expect((await settleTrust(await scene.inspect(), scene.store, ask)).state).toBe('nothing-to-trust')
  })
})

describe('grants are in files that only the user may write', () => {
  test('with mode 0600 in a folder of 0700, whatever the mask', async () => {
    await using scene = await makeScene({ [settings]: '{}' })
    await grantTrust(await scene.inspect(), scene.store)
    const folder = scene.folder.at('config/trust')
    const names = await readdir(folder)
    const modes = [folder, ...names.map((name) => join(folder, name))].map(
      async (path) => (await stat(path)).mode & 0o777,
    )
    expect(await Promise.all(modes)).toEqual([0o700, 0o600])
  })

  test.each<[string, (path: string) => Promise<void>]>([
    ['that others may write', (path) => chmod(path, 0o622)],
    ['that is damaged', (path) => writeFile(path, '{"version":1')],
    [
      'for another folder',
      async (path) =>
        writeFile(path, JSON.stringify({ version: 1, root: '/', grantedAt: 0, files: {}, programs: {}, commands: {} })),
    ],
  ])('a grant %s is ignored', async (_, spoil) => {
    await using scene = await makeScene({ [settings]: '{}' })
    await grantTrust(await scene.inspect(), scene.store)
    const [name = ''] = await readdir(scene.folder.at('config/trust'))
    await spoil(join(scene.folder.at('config/trust'), name))
    expect((await scene.state()).state).toBe('untrusted')
  })
})

test('the summary shows every word of a command, and nothing in it can hide', async () => {
  const escape = String.fromCharCode(27)
  await using scene = await makeScene({
    [settings]: JSON.stringify({
      mcpServers: {
        docs: {
          command: 'npx',
          args: ['-y', "it's", `a${escape}[2K`, ' '.repeat(3)],
          env: { pass: ['TOKEN'], set: { A: 'b c' } },
          cwd: 'sub',
        },
        web: { url: 'https://example.com/mcp', headers: { 'X-Key': 'x' } },
      },
      hooks: { toolCall: [{ matcher: 'bash', command: 'check --all\nrm -rf x' }] },
      permissions: { allow: ['command npm test'], mode: 'auto' },
      shellPrefix: 'nice',
      extensions: ['./e.ts'],
    }),
    [`.tapetree/prompts/x${escape}[31m.md`]: '',
    '.tapetree/e.ts': '',
  })
  const { summary } = await scene.inspect()
  expect(summary).toEqual([
    String.raw`MCP server docs: npx -y 'it'\''s' 'a\u{1b}[2K' '   ' (in sub) (sets A='b c') (is given TOKEN)`,
    'MCP server web: https://example.com/mcp (headers X-Key)',
    String.raw`hook toolCall 1: check --all\u{a}rm -rf x (for bash)`,
    'shell prefix: nice',
    'extension ./e.ts',
    'allows without asking: command npm test',
    'mode auto',
    'file .tapetree/e.ts (0 bytes)',
    String.raw`file .tapetree/prompts/x\u{1b}[31m.md (0 bytes)`,
    expect.stringMatching(/^file \.tapetree\/settings\.json \(\d+ bytes\)$/),
    'not covered by trust: scripts that are started by name, as from package.json (MCP server docs)',
    'not covered by trust: other files that commands read or start (hook toolCall 1, shell prefix)',
    'not covered by trust: other files that extensions read or start',
  ])
})

test('the hash depends only on paths and contents', async () => {
  await using scene = await makeScene({ [settings]: '{}', '.agents/a': '1' })
  const { hash } = await scene.inspect()
  await scene.folder.write('repository/README.md', 'changed')
  await scene.folder.write(`repository/${settings}`, '{}')
  expect((await scene.inspect()).hash).toBe(hash)
  await scene.folder.write('repository/.agents/a', '2')
  expect((await scene.inspect()).hash).not.toBe(hash)
})
