import { text, type Session } from '@tapetree/session'
import { assistant, call, toolResult, user } from '@tapetree/session/testing'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SessionHome } from '../../testing/session-home.ts'

let home: SessionHome

beforeEach(async () => {
  home = await SessionHome.make()
})

afterEach(() => home[Symbol.asyncDispose]())

// Split, so that no scanner reports this file as a leak.
const token = ['ghp', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'].join('_')

async function talk(session: Session): Promise<void> {
  const asked = await user(session, 'Look at <script>alert(1)</script>')
  await assistant(session, 'It says', call('c1', 'read', { path: 'a.txt' }))
  await toolResult(session, 'c1', `${'x'.repeat(250_000)} ${token}`)
  await session.branch(asked)
  await assistant(session, `**Done** \u001b[2J with ${token}`)
}

test('a bundle has no secrets, even in blobs, and can be imported as a new session', async () => {
  const id = await home.session(talk)
  const { err, code } = await home.run(['sessions', 'export', id, '--output', 'out.tapetree'])
  expect([code, err]).toEqual([0, expect.stringContaining('Removed now: 2 github-token.')])
  const bundle = await readFile(join(home.cwd, 'out.tapetree'), 'utf8')
  expect(bundle).not.toContain(token.slice(4))
  const imported = await home.json('sessions', 'import', 'out.tapetree', '--name', 'from afar')
  const copy = String(imported['id'])
  expect(copy).not.toBe(id)
  expect(await home.json('log', 'verify', copy)).toMatchObject({ reports: [{ is_intact: true }] })
  await using session = await home.store.open(copy, { readOnly: true })
  expect(session.info).toMatchObject({ name: 'from afar', messageCount: 4, parentSession: id })
  const said = JSON.stringify(await session.getTree())
  expect(said).toContain(`${'x'.repeat(250_000)} [redacted: github-token]`)
  expect((await home.run(['sessions', 'show', id])).code).toBe(0)
})

test('a bundle without secrets is the log byte for byte', async () => {
  const id = await home.session((session) => user(session, 'nothing to hide'))
  const { out, err } = await home.run(['sessions', 'export', id])
  expect(out).toContain(await readFile(home.logOf(id), 'utf8'))
  expect(err).toContain('No secrets found.')
  const broken = await home.run(['sessions', 'import', '-'], { stdin: out.slice(0, -10) })
  expect([broken.code, broken.err]).toEqual([7, expect.stringContaining('This is not a usable pack')])
})

test('Markdown has the path, harmless and without secrets', async () => {
  const id = await home.session(talk)
  const { out, err } = await home.run(['sessions', 'export', id, '--format', 'markdown'])
  expect(out).toContain('## Assistant\n\n**Done** ␛[2J with [redacted: github-token]\n')
  expect(out).toContain('Not in this file: 1 other branch.')
  expect(err).toContain('Removed now: 1 github-token.')
})

test('an HTML page has every branch, makes no requests and escapes all markup', async () => {
  const id = await home.session(async (session) => {
    await talk(session)
    const image = { type: 'url', mediaType: 'image/png', data: 'https://example.com/x.png' } as const
    await session.appendMessage('user', [
      text('and ![x](https://example.com/y.png)'),
      { type: 'image', image: { source: image } },
    ])
  })
  const result = await home.json('sessions', 'export', id, '--output', 'out.html')
  expect(result).toMatchObject({ format: 'html', redacted: { 'github-token': 2 }, images: 1 })
  const page = await readFile(join(home.cwd, 'out.html'), 'utf8')
  expect(page).toContain(`content="default-src 'none'; style-src 'sha256-`)
  expect(page).toContain('Look at &lt;script&gt;alert(1)&lt;/script&gt;')
  expect(page).toContain('<h2>Branch 1 (2 entries)</h2>')
  expect(page).toContain('<a href="#branch-1">')
  expect(page).not.toMatch(/<script|<img|<link|<iframe|\ssrc=|url\(|@import| on\w+=/i)
  expect(page).not.toContain(token)
})

test('an HTML page shows changes as diffs with marked words', async () => {
  const id = await home.session(async (session) => {
    await user(session, 'Change it.')
    await assistant(session, 'Yes.', call('c1', 'edit', { path: 'a.ts', oldText: 'a <b> c', newText: 'a <i> c' }))
    await toolResult(session, 'c1', 'Edited a.ts.\n\n--- a.ts\n+++ a.ts\n@@ -7,2 +7,2 @@\n-a <b> c\n+a <i> c\n same')
  })
  await home.json('sessions', 'export', id, '--output', 'out.html')
  const page = await readFile(join(home.cwd, 'out.html'), 'utf8')
  expect(page).toContain('<del>    7 − a &lt;<mark>b</mark>&gt; c</del>\n<ins>    7 + a &lt;<mark>i</mark>&gt; c</ins>')
  expect(page).toContain('    8   same')
  expect(page).not.toContain('oldText')
})

test('an HTML page colors the code of diffs, in both of its themes', async () => {
  const id = await home.session(async (session) => {
    await user(session, 'Change it.')
    const change = { path: 'a.ts', oldText: "const a = 'x'", newText: "const a = '<y>'" }
    await assistant(session, 'Yes.', call('c1', 'edit', change), call('c2', 'edit', { ...change, path: 'a.unknown' }))
  })
  await home.json('sessions', 'export', id, '--output', 'out.html')
  const page = await readFile(join(home.cwd, 'out.html'), 'utf8')
  const word = '<span class="s-keyword">const</span>'
  expect(page).toMatch(
    new RegExp(`<ins> +\\+ ${word} a = <span class="s-string">&#39;</span><mark><span class="s-string">&lt;y&gt;`),
  )
  // A file in a language without a grammar has no colors.
  expect(page).toMatch(/<ins> +\+ const a = &#39;/)
  expect(page.match(/--word: #/g)).toHaveLength(2)
})

test('an HTML page shows reads that follow one another as one row', async () => {
  const id = await home.session(async (session) => {
    await user(session, 'Look.')
    const reads = ['a.ts', 'b.ts'].map((path) => call(path, 'read', { path }))
    await assistant(
      session,
      'I look.',
      ...reads,
      call('c3', 'ls', { path: '.' }),
      call('c4', 'bash', { command: 'ls' }),
    )
  })
  await home.json('sessions', 'export', id, '--output', 'out.html')
  const page = await readFile(join(home.cwd, 'out.html'), 'utf8')
  expect(page).toContain('<summary>read 2 files, listed 1 folder</summary><details><summary>read a.ts</summary>')
  expect(page).toContain('</details></details><details><summary>bash ls</summary>')
})

test('on a terminal it asks first, and leaves no file behind without a yes', async () => {
  const id = await home.session(talk)
  const terminal = { isTTY: true, columns: 80 }
  const no = await home.run(['sessions', 'export', id, '--output', 'out.md'], { ...terminal, stdin: 'n\n' })
  expect(no.err).toMatch(/Removed now: 1 github-token\.[^]*Write it to .*out\.md\? \[y\/N\] Nothing was written\./)
  expect(await readdir(home.cwd)).toEqual([])
  await home.run(['sessions', 'export', id, '--output', 'out.md'], { ...terminal, stdin: 'yes\n' })
  expect(await readdir(home.cwd)).toEqual(['out.md'])
  expect(await home.run(['sessions', 'export', id, '--output', 'out.md'])).toMatchObject({ code: 2 })
  expect(await home.run(['sessions', 'export', id, '--output', 'out.md', '--yes'], terminal)).toMatchObject({ code: 0 })
})

test('a page compares each branch with the current path, without secrets in the commands of checks', async () => {
  const id = await home.session(async (session) => {
    const fork = await user(session, 'do it')
    await assistant(session, 'one way')
    const check = { command: `TOKEN=${token} npm test`, exitCode: 1, durationMs: 10 }
    await session.append({ type: 'check', check })
    await session.branch(fork)
    await assistant(session, 'another way')
    await assistant(session, 'done')
  })
  await home.json('sessions', 'export', id, '--output', 'out.html')
  const page = await readFile(join(home.cwd, 'out.html'), 'utf8')
  expect(page).toContain('<tr><th>messages</th><td>1</td><td>2</td></tr>')
  expect(page).toMatch(/<th>checks<\/th><td>1 of 1 failed: TOKEN=.* npm test \(exit code 1\)<\/td><td>-<\/td>/)
  expect(page).not.toContain(token)
})
