import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { sayAndWait } from '../peers/answers.ts'
import { logLines, sessionsFolder } from '../peers/session-files.ts'
import { serve, untilLine, type Served } from './served.ts'

/**
 * Sends a whole request and the beginning of another in one write. When the first has its response, the server has the rest too.
 * Returns a function that sends the end and resolves with the second response.
 */
async function begin({ url, token }: Served, path: string, end: string): Promise<() => Promise<string>> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const request = (target: string): string =>
    `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const second = request(path)
  const closed = once(socket, 'close')
  let received = ''
  socket.on('data', (data: Buffer) => (received += data.toString()))
  socket.write(request('/api/caller') + second.slice(0, second.length - end.length))
  await once(socket, 'data')
  return async () => {
    socket.write(end)
    await closed
    return received.slice(received.lastIndexOf('HTTP/1.1'))
  }
}

interface Attached {
  frames: () => string[]
  /** The close code. */
  closed: Promise<number>
}

/** Attaches a client to a session over a WebSocket. */
async function attach({ url, token }: Served, id: string): Promise<Attached> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/sessions/${id}/ws`, ['tapetree.v1', `bearer.${token}`])
  const frames: string[] = []
  socket.addEventListener('message', ({ data }) => frames.push(String(data)))
  const closed = new Promise<number>((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)))
  const attached = new Promise((resolve) => socket.addEventListener('message', resolve, { once: true }))
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  socket.send(JSON.stringify({ type: 'attach', data: { client: { id: 'me', name: 'me', kind: 'test' } } }))
  await attached
  return { frames: () => frames.map((frame) => (JSON.parse(frame) as { type: string }).type), closed }
}

/** A server with one run that goes on when the gate `go` opens. */
async function serveRun(
  ...args: string[]
): Promise<{ home: FakeHome; served: Served; id: string; drains: Promise<unknown> }> {
  const home = await fakeHome()
  onTestFinished(() => home[Symbol.asyncDispose]())
  home.provider.script(sayAndWait(['Half an answer'], 'go', [' and the rest']))
  const served = await serve(home, '--log-level', 'info', ...args)
  const drains = new Promise((resolve) =>
    served.child.process.stderr.on('data', (text: Buffer) => {
      if (text.includes('draining')) resolve(undefined)
    }),
  )
  const { id } = (await served.ask('/api/sessions', { cwd: home.cwd, prompt: 'Begin' })) as { id: string }
  await untilLine(served, id, { type: 'run_start' })
  return { home, served, id, drains }
}

test('SIGTERM turns readiness, ends streams, tells clients 1012, answers open requests and leaves with 0', async () => {
  const home = await fakeHome()
  onTestFinished(() => home[Symbol.asyncDispose]())
  home.provider.script(sayAndWait(['Half an answer'], 'never', []))
  const served = await serve(home)
  const { id } = (await served.ask('/api/sessions', { cwd: home.cwd, prompt: 'Begin' })) as { id: string }
  const started = await untilLine(served, id, { type: 'run_start' })

  const client = await attach(served, id)

  const longPoll = await begin(served, `/api/sessions/${id}/events?after=${started + 1000}&wait=60`, '')
  const ready = await begin(served, '/api/ready', '\r\n')
  const list = await begin(served, '/api/sessions', '\r\n')

  served.child.process.kill('SIGTERM')
  expect(await client.closed).toBe(1012)
  expect(client.frames()).toContain('bye')
  expect(await ready()).toMatch(/^HTTP\/1\.1 503 [\s\S]*shutting down/)
  expect(await list()).toMatch(/^HTTP\/1\.1 200 /)
  expect(await longPoll()).toMatch(/^HTTP\/1\.1 200 [\s\S]*"events":\[\]/)
  expect(await served.child.ended).toBe(0)
  expect((await logLines(home)).filter((line) => line.includes('"type":"run_end"'))).toEqual([])
  await expect(fetch(new URL('/api/health', served.url))).rejects.toThrow('fetch failed')
})

test('a server with --drain takes no new prompts, lets its runs finish, and leaves with 0', async () => {
  const { home, served, id, drains } = await serveRun('--drain', '120')
  const { id: idle } = (await served.ask('/api/sessions', { cwd: home.cwd })) as { id: string }
  const client = await attach(served, id)

  served.child.process.kill('SIGTERM')
  await drains
  expect(await served.ask('/api/ready')).toMatchObject({
    status: 'not-ready',
    reason: expect.stringContaining('draining') as string,
  })
  for (const [path, body] of [
    [`/api/sessions/${idle}/prompt`, { text: 'Another' }],
    [`/api/sessions/${id}/queue`, { message: 'Another' }],
    ['/api/sessions', { cwd: home.cwd, prompt: 'Another' }],
  ] as const) {
    expect([path, await served.ask(path, body)]).toMatchObject([path, { status: 503, type: 'draining' }])
  }
  // Reading and clients that are attached go on.
  expect(await served.ask(`/api/sessions/${id}`)).toMatchObject({ id, status: 'running' })
  expect(client.frames()).not.toContain('bye')

  home.provider.release('go')
  expect(await client.closed).toBe(1012)
  expect(client.frames()).toContain('bye')
  expect(await served.child.ended).toBe(0)
  const log = await readFile(join(sessionsFolder(home), id, 'events.jsonl'), 'utf8')
  expect(log).toMatch(/and the rest[\s\S]*"type":"run_end"/)
})

test('after the time of --drain, the server leaves the run open for the next one', async () => {
  const { home, served, id } = await serveRun('--drain', '1')
  const client = await attach(served, id)
  served.child.process.kill('SIGTERM')
  expect(await client.closed).toBe(1012)
  expect(await served.child.ended).toBe(0)
  expect((await logLines(home)).filter((line) => line.includes('"type":"run_end"'))).toEqual([])
})

test('a second signal ends a server that drains at once, even if it is another signal', async () => {
  const { served, drains } = await serveRun('--drain', '3600')
  served.child.process.kill('SIGINT')
  await drains
  served.child.process.kill('SIGTERM')
  expect(await served.child.ended).toBe('SIGTERM')
})
