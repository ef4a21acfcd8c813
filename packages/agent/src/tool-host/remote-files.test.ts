import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createRedactor } from '@tapetree/redact'
import { memoryStore, newId, type Session } from '@tapetree/session'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canary } from '../testing/canary.ts'
import { KeptFiles, recreatedNotice, recreateFiles, sendFiles, takeFiles } from './remote-files.ts'
import { RemoteWorkspace } from './remote-workspace.ts'
import { MemoryChannel } from './testing/memory-channel.ts'
import { ToolHost, type ToolHostOptions } from './tool-host.ts'

let root: string
let session: Session
const opened: { close(): unknown }[] = []

beforeEach(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'remote-files-')))
  session = await memoryStore().create()
})

afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close()
  await session.close()
  rmSync(root, { recursive: true, force: true })
})

interface Place {
  folder: string
  channel: MemoryChannel
  remote: RemoteWorkspace
  kept: KeptFiles
}

/** A host with one workspace, which has these files. */
async function place(
  name: string,
  files: Record<string, string> = {},
  options: Partial<ToolHostOptions> = {},
): Promise<Place> {
  const folder = join(root, name)
  mkdirSync(folder)
  write(folder, files)
  const host = await ToolHost.open({
    dataFolder: join(root, `${name}-data`),
    name,
    workspaces: { app: folder },
    mode: 'auto',
    ...options,
  })
  const channel = new MemoryChannel()
  channel.connect(host)
  await new Promise<void>((resolve) => channel.subscribe(({ type }) => type === 'up' && resolve()))
  const reference = { name: 'app', hostId: host.hello.id, hostName: name, folder, platform: 'linux' }
  const remote = new RemoteWorkspace(reference, channel)
  const kept = new KeptFiles(session, remote)
  opened.push(host, remote, kept)
  return { folder, channel, remote, kept }
}

function write(folder: string, files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

const read = ({ folder }: Place, path: string): string => readFileSync(join(folder, path), 'utf8')

describe('the files of a workspace', () => {
  test('are taken for a few requests at once, so that a service cannot fill the memory of a host', async () => {
    const { channel } = await place('first', { 'a.txt': 'one\n' })
    const answers = (type: string): number => channel.messages.filter((each) => each.type === type).length
    for (let count = 0; count < 20; count++) channel.send({ type: 'files', id: newId(), workspace: 'app' })
    await expect.poll(() => answers('files') + answers('refused'), { timeout: 20_000 }).toBe(20)
    expect([answers('files'), answers('refused')]).toEqual([4, 16])
    // What was given up makes room again.
    const [first] = channel.messages.flatMap((each) => (each.type === 'files' ? [each] : []))
    channel.send({ type: 'part', id: first?.id ?? '', off: 0 })
    await channel.next('data')
    channel.send({ type: 'files', id: newId(), workspace: 'app' })
    await channel.next('files')
  })

  test('are recreated on another host as they were, with what the session kept of them', async () => {
    const first = await place('first', { 'a.txt': 'one\n', 'src/b.txt': 'two\n', 'run.sh': '#!/bin/sh\n' })
    execFileSync('chmod', ['+x', join(first.folder, 'run.sh')])
    symlinkSync('a.txt', join(first.folder, 'link'))
    await first.kept.keep()
    write(first.folder, { 'a.txt': 'changed\n', 'new/c.txt': 'three\n' })
    rmSync(join(first.folder, 'src'), { recursive: true })
    await first.kept.keep()
    expect(session.workspaceFiles?.packs.length).toBe(2)
    first.channel.cut()
    const second = await place('second')
    expect(await recreateFiles(session, second.remote)).toEqual({ files: 4, leftOut: [] })
    expect(read(second, 'a.txt')).toBe('changed\n')
    expect(read(second, 'new/c.txt')).toBe('three\n')
    expect(read(second, 'link')).toBe('changed\n')
    expect(existsSync(join(second.folder, 'src'))).toBe(false)
    execFileSync('test', ['-x', join(second.folder, 'run.sh')])
    // The next host knows them, so only changes are sent from there on.
    write(second.folder, { 'a.txt': 'changed again\n' })
    await second.kept.keep()
    expect(session.workspaceFiles).toMatchObject({ hostId: second.remote.reference.hostId })
    expect(session.workspaceFiles?.packs.length).toBe(3)
  })

  test('are kept after a run, and only if they have changed', async () => {
    const { folder, kept } = await place('first', { 'a.txt': 'one\n' })
    const end = async (): Promise<void> => {
      const runId = newId()
      await session.append({ type: 'run_start', runStart: { runId, leafId: null } })
      await session.append({ type: 'run_end', runEnd: { runId, outcome: 'completed' } })
      // After the one that the end of the run has asked for.
      await kept.keep()
    }
    await end()
    const { tree } = session.workspaceFiles ?? {}
    const { seq } = session.head
    await end()
    expect(session.head.seq).toBe(seq + 2)
    write(folder, { 'a.txt': 'two\n' })
    await end()
    expect(session.workspaceFiles?.tree).not.toBe(tree)
  })

  test('are kept as a whole again before they become too large to be recreated', async () => {
    const { folder, kept } = await place('first', { 'a.txt': 'one\n' })
    await kept.keep()
    const before = session.workspaceFiles as NonNullable<Session['workspaceFiles']>
    const packs = before.packs.map((pack) => ({ ...pack, size: 193 * 1024 ** 2 }))
    await session.append({ type: 'workspace_files', workspaceFiles: { ...before, packs } })
    write(folder, { 'b.txt': 'two\n' })
    await kept.keep()
    expect(session.workspaceFiles?.packs.map(({ size }) => size < 1024)).toEqual([true])
    expect(await recreateFiles(session, (await place('second')).remote)).toMatchObject({ files: 2 })
  })

  test('come from a folder inside of a repository without the rest of it', async () => {
    const repository = join(root, 'repository')
    write(repository, { 'outside.txt': 'not offered\n', 'part/a.txt': 'offered\n', 'part/.gitignore': 'ignored\n' })
    write(repository, { 'part/ignored': 'x' })
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: repository, encoding: 'utf8' })
    git('init', '-q', '-b', 'main')
    git('add', '.')
    git('-c', 'user.name=n', '-c', 'user.email=e@x.invalid', 'commit', '-q', '-m', 'one')
    const { kept } = await place('first', {}, { workspaces: { app: join(repository, 'part') } })
    await kept.keep()
    expect(session.workspaceFiles).toMatchObject({ branch: 'main', head: git('rev-parse', 'HEAD').trim() })
    const second = await place('second')
    const done = await recreateFiles(session, second.remote)
    expect(done.files).toBe(2)
    expect(read(second, 'a.txt')).toBe('offered\n')
    expect(existsSync(join(second.folder, 'ignored'))).toBe(false)
    const notice = recreatedNotice(session, done, second.remote)
    expect(notice).toContain(`now ${second.folder} on second`)
    expect(notice).toContain('of branch main')
  })

  test('stay on the host if they have a secret, or if its rules forbid reading them', async () => {
    const secret = canary()
    const { kept } = await place(
      'first',
      { 'a.txt': 'fine\n', 'b.txt': `token = ${secret}\n`, '.env': 'KEY=1\n', 'private/c.txt': 'c\n' },
      {
        redactor: createRedactor({ secrets: { TOKEN: secret } }),
        rules: [{ effect: 'deny', type: 'read', match: './private/**' }],
      },
    )
    await kept.keep()
    expect(session.workspaceFiles?.leftOut?.map(({ path }) => path).toSorted()).toEqual([
      '.env',
      'b.txt',
      'private/c.txt',
    ])
    const second = await place('second')
    const done = await recreateFiles(session, second.remote)
    expect(done.files).toBe(1)
    expect(recreatedNotice(session, done, second.remote)).toContain('b.txt (secret)')
  })

  test('are not kept if the host does not share them', async () => {
    const { kept, channel } = await place('first', { 'a.txt': 'one\n' }, { sharesFiles: false })
    await kept.keep()
    expect(session.workspaceFiles).toBeUndefined()
    channel.send({ type: 'files', id: newId(), workspace: 'app' })
    expect(await channel.next('refused')).toMatchObject({ reason: 'This tool host does not share its files.' })
  })
})

describe('files are not recreated', () => {
  test('in a folder that has some', async () => {
    const { kept } = await place('first', { 'a.txt': 'one\n' })
    await kept.keep()
    const second = await place('second', { 'mine.txt': 'mine\n' })
    await expect(recreateFiles(session, second.remote)).rejects.toThrow('is not empty')
    expect(existsSync(join(second.folder, 'a.txt'))).toBe(false)
  })

  test('if they are too large, and are not loaded then', async () => {
    const { remote } = await place('first')
    const packs = [{ sha256: 'a'.repeat(64), size: 257 * 1024 ** 2 }]
    const workspaceFiles = { hostId: 'host-1', name: 'app', tree: 'a'.repeat(40), packs }
    await session.append({ type: 'workspace_files', workspaceFiles })
    await expect(recreateFiles(session, remote)).rejects.toThrow('more than 256 MiB')
  })

  test('if some of them are missing', async () => {
    const first = await place('first', { 'a.txt': 'one\n' })
    await first.kept.keep()
    write(first.folder, { 'b.txt': 'two\n' })
    const { tree, pack } = await takeFiles(first.remote, session.workspaceFiles?.tree)
    const second = await place('second')
    await expect(sendFiles(second.remote, { tree, packs: [pack] })).rejects.toThrow('could not be read')
    await expect(sendFiles(second.remote, { tree, packs: [Buffer.from('no pack')] })).rejects.toThrow(
      'could not be read',
    )
    expect(existsSync(join(second.folder, 'b.txt'))).toBe(false)
  })

  test('where the rules of the host forbid it', async () => {
    const { kept } = await place('first', { 'a.txt': 'one\n', 'private/b.txt': 'two\n' })
    await kept.keep()
    const second = await place('second', {}, { rules: [{ effect: 'deny', type: 'write', match: './private/**' }] })
    expect(await recreateFiles(session, second.remote)).toEqual({ files: 1, leftOut: ['private/b.txt'] })
    const third = await place('third', {}, { mode: 'plan' })
    expect(await recreateFiles(session, third.remote)).toMatchObject({ files: 0 })
    expect(existsSync(join(third.folder, 'a.txt'))).toBe(false)
  })

  test('outside of the folder', async () => {
    const forged = join(root, 'forged')
    const git = (args: string[], input = ''): string =>
      execFileSync('git', args, { cwd: forged, encoding: 'utf8', input }).trim()
    mkdirSync(forged)
    git(['init', '-q'])
    const file = git(['hash-object', '-w', '--stdin'], 'x')
    const second = await place('second')
    for (const name of ['..', '.git', '.GIT']) {
      const tree = git(['mktree'], `040000 tree ${git(['mktree'], `100644 blob ${file}\thooks`)}\t${name}\n`)
      const pack = execFileSync('git', ['pack-objects', '--revs', '--stdout', '-q'], {
        cwd: forged,
        input: `${tree}\n`,
      })
      await expect(sendFiles(second.remote, { tree, packs: [pack] })).rejects.toThrow('could not be read')
    }
    expect(readdirSync(second.folder)).toEqual([])
    expect(existsSync(join(root, 'hooks'))).toBe(false)
  })

  test('by a host that goes away meanwhile', async () => {
    const { kept } = await place('first', { 'a.txt': 'one\n' })
    await kept.keep()
    const second = await place('second')
    const recreated = recreateFiles(session, second.remote)
    void second.channel.next('part').then(() => second.channel.cut())
    await expect(recreated).rejects.toThrow('cannot be reached')
  })
})
