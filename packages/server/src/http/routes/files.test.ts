import { noRules } from '@tapetree/agent/permissions'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { TestApi, type TestApiOptions } from '../testing/test-api.ts'

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Folder {
  path: string
  at: (name: string) => string
  write: (name: string, content: string | Uint8Array) => Promise<void>
}

async function makeFolder(): Promise<Folder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-files-')))
  cleanUps.push(() => rm(path, { recursive: true }))
  const at = (name: string): string => join(path, name)
  const write = async (name: string, content: string | Uint8Array): Promise<void> => {
    await mkdir(dirname(at(name)), { recursive: true })
    await writeFile(at(name), content)
  }
  return { path, at, write }
}

interface Stage {
  api: TestApi
  folder: Folder
  /** Of the session. */
  path: string
}

async function stage(files: Record<string, string | Uint8Array>, parts: TestApiOptions['parts'] = {}): Promise<Stage> {
  const folder = await makeFolder()
  for (const [name, content] of Object.entries({ 'project/.keep': '', ...files })) await folder.write(name, content)
  const api = new TestApi({ parts: { roots: () => [folder.path], ...parts } })
  cleanUps.push(async () => {
    await api.close()
    expect(api.faults).toEqual([])
  })
  return { api, folder, path: await api.session({ cwd: folder.at('project') }) }
}

async function body<T = Record<string, unknown>>(response: Response | Promise<Response>): Promise<T> {
  return (await (await response).json()) as T
}

const query = (values: { path: string; offset?: number; limit?: number }): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')

describe('a file', () => {
  test('is read in parts, with its encoding, and is not sent again if it has not changed', async () => {
    const { api, folder, path } = await stage({ 'project/a.txt': 'żółw\n'.repeat(10) })
    const first = await api.get(`${path}/files/content?${query({ path: 'a.txt', limit: 30 })}`)
    const part = await body<{ content: string; next_offset: number }>(first)
    expect(part).toMatchObject({ path: 'a.txt', type: 'text', encoding: 'utf-8', size: 80, is_exact: true, offset: 0 })
    const rest = await body<{ content: string; next_offset: null }>(
      api.get(`${path}/files/content?${query({ path: 'a.txt', offset: part.next_offset })}`),
    )
    expect([part.content + rest.content, rest.next_offset]).toEqual(['żółw\n'.repeat(10), null])
    const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
    const again = (): Promise<Response> =>
      api.get(`${path}/files/content?${query({ path: 'a.txt', limit: 30 })}`, { headers })
    expect((await again()).status).toBe(304)
    await folder.write('project/a.txt', 'other\n')
    expect(await body(again())).toMatchObject({ content: 'other\n' })
  })

  test('that is no text has its type, and its bytes as an image or a download', async () => {
    const png = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
    const marked = Buffer.from('\ufefftext', 'utf16le')
    const { api, path } = await stage({
      'project/p.png': png,
      'project/page.html': '<script>alert(1)</script>',
      'project/b.bin': 'a\0b',
      'project/bad.txt': Buffer.from([0x61, 0xff]),
      'project/wide.txt': marked,
    })
    const content = (name: string): Promise<unknown> => body(api.get(`${path}/files/content?${query({ path: name })}`))
    expect(await content('p.png')).toMatchObject({ type: 'image', media_type: 'image/png', size: 12 })
    expect(await content('b.bin')).toMatchObject({ type: 'binary', size: 3 })
    expect(await content('bad.txt')).toMatchObject({ content: 'a\ufffd', is_exact: false })
    expect(await content('wide.txt')).toMatchObject({ content: 'text', encoding: 'utf-16le', is_exact: true })
    const raw = (name: string, headers = {}): Promise<Response> =>
      api.get(`${path}/files/raw?${query({ path: name })}`, { headers })
    const image = await raw('p.png')
    expect([image.headers.get('content-type'), image.headers.get('content-disposition')]).toEqual([
      'image/png',
      'inline',
    ])
    expect(Buffer.from(await image.arrayBuffer())).toEqual(png)
    expect((await raw('p.png', { 'if-none-match': image.headers.get('etag') ?? '' })).status).toBe(304)
    const page = await raw('page.html')
    expect(page.headers.get('content-type')).toBe('application/octet-stream')
    expect(page.headers.get('content-disposition')).toBe('attachment')
    expect(page.headers.get('content-security-policy')).toContain('sandbox')
  })

  test('outside of the folder, secret, missing or special is rejected with the reason', async () => {
    const { api, folder, path } = await stage({ 'project/.env': 'A=1', 'project/sub/a': 'a', 'other/x.txt': 'private' })
    await symlink(folder.at('other'), folder.at('project/link'))
    const statusOf = async (file: string, route = 'content'): Promise<unknown> => {
      const { status, type } = await body<{ status: number; type: string }>(
        api.get(`${path}/files/${route}?${query({ path: file })}`),
      )
      return [status, type]
    }
    for (const file of ['../other/x.txt', 'link/x.txt', folder.at('project/sub/a'), '..', 'sub/../../other', 'a\0b'])
      expect(await statusOf(file)).toEqual([403, 'outside-folder'])
    expect(await statusOf('.env')).toEqual([403, 'secret-file'])
    expect(await statusOf('.env', 'raw')).toEqual([403, 'secret-file'])
    expect(await statusOf('none')).toEqual([404, 'file-not-found'])
    expect(await statusOf('sub')).toEqual([422, 'not-a-file'])
    expect(await statusOf('')).toEqual([422, 'invalid-request'])
    expect((await api.get(`${path}/files/content?${query({ path: 'sub/a', limit: 1 })}`)).status).toBe(422)
  })

  test('follows the rules of the user', async () => {
    const rules = { ...noRules, user: [{ effect: 'ask' as const, type: 'read' as const, match: '**/notes' }] }
    const { api, path } = await stage({ 'project/notes/a.md': 'a' }, { workspace: async () => ({ rules }) })
    expect(await body(api.get(`${path}/files/content?path=notes/a.md`))).toMatchObject({
      status: 403,
      type: 'secret-file',
      detail: expect.stringContaining('A rule requires permission'),
    })
  })
})

describe('git', () => {
  const git = (folder: Folder, ...command: string[]): string =>
    execFileSync(
      'git',
      ['-C', folder.at('project'), '-c', 'user.name=A', '-c', 'user.email=a@example.com', ...command],
      {
        encoding: 'utf8',
      },
    )

  test('shows status and diff of the session folder', async () => {
    const { api, folder, path } = await stage(
      { 'project/a.txt': 'one\n' },
      { workspace: async () => ({ rules: noRules }) },
    )
    expect(await body(api.get(`${path}/git`))).toMatchObject({ status: 404, type: 'no-repository' })
    git(folder, 'init', '--quiet', '--initial-branch=trunk')
    git(folder, 'add', '.')
    git(folder, 'commit', '--quiet', '--message', 'start')
    await folder.write('project/a.txt', 'two\n')
    await folder.write('project/.env', 'A=1\n')
    expect(await body(api.get(`${path}/git`))).toMatchObject({
      branch: 'trunk',
      files: [
        { path: 'a.txt', staged: 'unmodified', unstaged: 'modified', is_untracked: false },
        { path: '.env', is_untracked: true },
      ],
      is_cut: false,
    })
    const diff = await body<{ patch: string }>(api.get(`${path}/git/diff?path=a.txt`))
    expect(diff).toMatchObject({ path: 'a.txt', added: 1, removed: 1, is_binary: false })
    expect(diff.patch).toContain('-one\n+two\n')
    expect(await body(api.get(`${path}/git/diff?path=a.txt&scope=staged`))).toMatchObject({ patch: '' })
    expect(await body(api.get(`${path}/git/diff?path=.env`))).toMatchObject({ status: 403, type: 'secret-file' })
    expect(await body(api.get(`${path}/git/diff?path=../x`))).toMatchObject({ status: 403, type: 'outside-folder' })
    git(folder, 'config', 'core.fsmonitor', 'touch /tmp/ran')
    expect(await body(api.get(`${path}/git`))).toMatchObject({ status: 409, type: 'git-refused' })
  })

  test('does not run in a project that is not trusted, and says why', async () => {
    const gitProblem = 'The project is not trusted.'
    const { api, folder, path } = await stage({}, { workspace: async () => ({ rules: noRules, gitProblem }) })
    git(folder, 'init', '--quiet')
    for (const route of ['git', 'git/diff?path=a.txt'])
      expect(await body(api.get(`${path}/${route}`))).toMatchObject({
        status: 409,
        type: 'git-refused',
        detail: gitProblem,
      })
    const { api: without, path: other } = await stage({})
    expect(await body(without.get(`${other}/git`))).toMatchObject({
      status: 409,
      detail: 'This server does not run git.',
    })
  })
})

test('a session whose tools work on another machine gets no files of the server', async () => {
  const { api, path } = await stage(
    { 'project/a.txt': 'of the server' },
    { workspace: async () => ({ rules: noRules }) },
  )
  {
    await using session = await api.store.open(path.split('/').at(-1) ?? '')
    const place = { name: 'app', hostId: 'host-1', hostName: 'laptop', folder: '/home/me/app', platform: 'linux' }
    await session.append({ type: 'workspace', workspace: place })
  }
  for (const route of ['files', 'files/content?path=a.txt', 'files/raw?path=a.txt', 'git', 'git/diff?path=a.txt'])
    expect(await body(api.get(`${path}/${route}`))).toMatchObject({
      status: 409,
      type: 'workspace-elsewhere',
      detail: 'The tools of this session work in "app" on the tool host laptop. This server does not have its files.',
    })
})
